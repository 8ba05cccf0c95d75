#include "tuner/model/network.hpp"

namespace rdmatune::model {
namespace {

constexpr int kTree = static_cast<int>(Algorithm::Tree);
constexpr int kRing = static_cast<int>(Algorithm::Ring);
constexpr Ticks kReferenceAlpha = ticksFromNs(kReferenceAlphaNs);
constexpr Ticks kLongest = Ticks{1} << 57;  // sums of a few stay below 2^60

/// What one slot of a connection holds of the message (NCCL: 8 slots of 64 KB for LL, half of it
/// flags; of 600 KB for LL128; of 512 KB for Simple), and how a ring and a tree make use of it.
struct SlotUse {
    std::uint64_t ring_chunk;  ///< largest chunk of a ring's step, per channel
    std::uint64_t tree_chunk;  ///< largest chunk of a tree, per channel
    std::uint64_t tree_least;  ///< chunks are cut down to this to fill the depth of the tree
    std::int64_t
        ring_window;  ///< steps that a ring may be ahead: both ends of a connection have slots
    bool streams;     ///< inside a node a rank passes on line by line what it receives
    std::uint64_t ring_mbps;
    /// What a tree's kernels carry at best in NCCL's count for the bus, 10^6 bytes/s: likewise.
    std::uint64_t tree_mbps;
};
constexpr SlotUse kSlots[kProtocols] = {{32'000, 32'000, 8'000, 16, true, 20'400, 20'400},
                                        {576'000, 576'000, 64'000, 16, true, 36'700, 29'000},
                                        {2'000'000, 512'000, 64'000, 4, false, 0, 36'000}};
constexpr std::int64_t kTreeWindow = 16;  // chunks
constexpr Rate kInsideRate = rateOf(400'000);
/// What one of a tree's channels passes on in one direction, 10^6 bytes/s (NCCL: 36 to 41 GB/s of
/// bus bandwidth, which counts a tree's bytes four times).
constexpr std::uint64_t kTreeChannelMbps = 9'000;

std::uint64_t channelsOf(std::uint32_t rails) {
    return rails > 4 ? rails : 4;
}

std::uint64_t onTheWire(Protocol protocol, std::uint64_t bytes) {
    // LL has a flag of four bytes with every four, LL128 of eight with every 120.
    return protocol == Protocol::LL      ? bytes * 2
           : protocol == Protocol::LL128 ? bytes + bytes / 15
                                         : bytes;
}

Ticks larger(Ticks a, Ticks b) {
    return a > b ? a : b;
}

/// a * count, cut off where it means nothing any more; both not negative.
Ticks times(Ticks a, std::int64_t count) {
    return static_cast<Ticks>(scaled(static_cast<std::uint64_t>(a),
                                     static_cast<std::uint64_t>(count), 0,
                                     static_cast<std::uint64_t>(kLongest)));
}

Ticks moved(Rate rate, std::uint64_t bytes) {
    const Ticks time = timeOf(rate, bytes);
    return time < kLongest ? time : kLongest;
}

std::uint64_t ceilDivide(std::uint64_t a, std::uint64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
}

/// A step between nodes: NCCL's own figure with the network's latency in the reference's place.
Ticks interHop(const Network& network, Ticks nccl) {
    return larger(0, nccl - kReferenceAlpha) + network.alpha;
}

Terms ringTerms(const Network& network, const LatencyTable& table, const Operation& o) {
    const int p = static_cast<int>(o.protocol);
    const std::int64_t ranks = o.size.ranks;
    const std::int64_t nodes = o.size.nodes;
    const std::int64_t passages = o.what == Collective::AllReduce ? 2 : 1;
    const std::int64_t steps = passages * (ranks - 1);
    // The longest way of a chunk: with several ranks per node it leaves every node once in each
    // passage.
    const std::int64_t inter = passages * (ranks > nodes ? nodes : nodes - 1);
    const std::int64_t intra = steps > inter ? steps - inter : 0;

    const SlotUse& slots = kSlots[p];
    const std::uint64_t part = ceilDivide(o.bytes, static_cast<std::uint64_t>(ranks));
    const std::uint64_t loops = ceilDivide(part, slots.ring_chunk * channelsOf(o.rails));
    // A chunk goes in two halves; the second follows while the first goes on.
    const std::uint64_t half = ceilDivide(part, loops) / 2;

    const Ticks post = o.protocol == Protocol::Simple ? 3 * table.post : table.post;
    const Ticks inside =
        larger(table.intra[kRing][p], post) + (slots.streams ? 0 : moved(kInsideRate, half));
    // One rank per node: nothing hides a step, and NCCL takes the tree's figure.
    const Ticks nccl = ranks == nodes ? table.inter[kTree][p] : table.inter[kRing][p];
    // With LL and LL128 a kernel has written a part before the host posts it; Simple is sent from
    // where it lies.
    const std::uint64_t kernels = o.protocol == Protocol::LL ? 1 : channelsOf(o.rails);
    const Ticks written = slots.streams ? moved(rateOf(slots.ring_mbps * kernels), half) : 0;
    const Ticks sent = moved(network.rate, onTheWire(o.protocol, half));
    const Ticks hop = interHop(network, nccl) + written + sent;
    // The worst edge is crossed once in each passage; two nodes have no other, there and back.
    const Ticks worst = passages * (nodes == 2 ? 2 : 1) * network.worst_extra;
    const Ticks path = times(inside, intra) + times(hop, inter) + worst;
    const Ticks paced =
        times((hop + network.alpha + 2 * network.worst_extra) / slots.ring_window, steps);

    // A loop begins when the last step of the one before has left; the last half comes in behind
    // the first.
    const Ticks next = larger(path / steps * (steps - 1) + 2 * sent, paced);
    const Ticks least =
        larger(path + sent, paced) + times(next, static_cast<std::int64_t>(loops) - 1);

    Terms terms;
    // Where bytes bind and not latencies, the last of them still has one hop to go.
    terms.fixed = interHop(network, nccl);
    terms.floor = larger(moved(network.rate, leavingBytes(o)), least - terms.fixed);
    terms.kernels = 1U << 16;
    return terms;
}

Terms treeTerms(const Network& network, const LatencyTable& table, const Operation& o) {
    const int p = static_cast<int>(o.protocol);
    const std::int64_t nodes = o.size.nodes;
    const std::int64_t chain = (static_cast<std::int64_t>(o.size.ranks) + nodes - 1) / nodes - 1;
    std::int64_t depth = 1;
    while ((std::int64_t{1} << depth) < nodes) ++depth;

    const SlotUse& slots = kSlots[p];
    const std::uint64_t half = ceilDivide(o.bytes, 2);  // each of the two trees carries one
    const std::uint64_t channels = channelsOf(o.rails);
    std::uint64_t chunk = slots.tree_chunk * channels / 2;
    const std::uint64_t wanted = static_cast<std::uint64_t>(depth + chain) * 4;
    while (half < chunk * wanted && chunk > slots.tree_least * channels / 2) chunk /= 2;
    const std::uint64_t chunks = ceilDivide(half, chunk);
    const auto count = static_cast<std::int64_t>(chunks);

    const std::uint64_t piece = ceilDivide(half, chunks);
    const Ticks sent = moved(network.rate, onTheWire(o.protocol, piece));
    // Where a node has two children, the second one's chunk comes in, or goes out, behind the first
    // one's. Up to three nodes no node has two.
    const Ticks hop = interHop(network, table.inter[kTree][p]) + sent * (nodes > 3 ? 2 : 1);
    const Ticks passed_on = slots.streams ? 0 : moved(rateOf(kTreeChannelMbps * channels), piece);
    const Ticks inside = table.intra[kTree][p] + passed_on;
    // Between the chunks of two trees a NIC stands idle now and then: 3 % in the simulator's mean.
    const Ticks leaving = moved(network.rate, leavingBytes(o));
    const Ticks shared = leaving + (nodes > 2 ? leaving / 32 : 0);
    const Ticks busy = times(shared / count, count - 1);
    // Until the first chunk comes down, chunks go up without company: half of the work is done
    // while the way up and down of the first one passes. Below the root that takes two hops; with
    // two or three nodes some node is root and leaf, and the simulator grants less.
    const Ticks lead = nodes == 2 ? hop / 2 : nodes == 3 ? hop : 2 * hop;
    const Ticks flowing = larger(busy / 2, busy - lead);
    Terms terms;
    terms.fixed = 2 * (times(inside, chain) + times(hop, depth) + network.worst_extra);
    // After the first chunk the others follow, at the pace of what is busiest or of the slots.
    const std::uint64_t kernels = o.protocol == Protocol::LL ? 1 : channels;
    const Ticks worked =
        nodes == 2 ? 0
                   : moved(rateOf(slots.tree_mbps * kernels), 2 * o.bytes) / count * (count + 1);
    const Ticks window = hop + network.alpha + 2 * network.worst_extra;
    terms.floor = larger(larger(flowing, worked), times(window, (count - 1) / kTreeWindow));
    // Kernels fill the first chunk before it leaves, and work off the last one when it has come.
    terms.kernels = ((chunks + 1) << 16) / chunks;
    return terms;
}

}  // namespace

Terms termsOn(const Network& network, const LatencyTable& table, const Operation& operation) {
    Terms terms = operation.algorithm == Algorithm::Tree ? treeTerms(network, table, operation)
                                                         : ringTerms(network, table, operation);
    // Nine hours: whatever takes longer loses anyway, and curves may go on from here without
    // overflow.
    constexpr Ticks kMost = Ticks{1} << 45;
    if (terms.fixed > kMost) terms.fixed = kMost;
    if (terms.floor > kMost) terms.floor = kMost;
    return terms;
}

std::uint64_t leavingBytes(const Operation& o) {
    const std::uint64_t wire = onTheWire(o.protocol, o.bytes);
    if (o.algorithm == Algorithm::Tree)
        // Inner node of one tree: half of the message up, half down to each of two children; leaf
        // of the other: half up. Three nodes form chains; two nodes have one edge in each tree.
        return o.size.nodes == 2 ? wire : o.size.nodes == 3 ? wire + wire / 2 : 2 * wire;
    const std::uint64_t all_but_own = wire - wire / o.size.ranks;
    return o.what == Collective::AllReduce ? 2 * all_but_own : all_but_own;
}

Ticks timeOn(const Network& network, const LatencyTable& table, const Operation& operation,
             Ticks bound) {
    const Terms terms = termsOn(network, table, operation);
    const auto kernels =
        static_cast<Ticks>(scaled(static_cast<std::uint64_t>(bound), terms.kernels, 16));
    return table.base[static_cast<int>(operation.algorithm)][static_cast<int>(operation.protocol)] +
           terms.fixed + larger(kernels, terms.floor);
}

}  // namespace rdmatune::model
