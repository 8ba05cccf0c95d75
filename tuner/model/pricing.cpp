// From a profile to what the network adds to NCCL's prices.
#include "tuner/model/pricing.hpp"

namespace rdmatune::model {
namespace {

constexpr int kTree = static_cast<int>(Algorithm::Tree);
constexpr int kRing = static_cast<int>(Algorithm::Ring);
constexpr Algorithm kAlgorithmOf[kWays] = {Algorithm::Tree, Algorithm::Ring, Algorithm::Ring};
constexpr Collective kCollectiveOf[kWays] = {Collective::AllReduce, Collective::AllReduce,
                                             Collective::AllGather};
constexpr int kLeavingShift = 20;

/// One pattern's network as measured, in place of what NCCL assumes.
Network measuredNetwork(const PatternFigures& figures, const Network& assumed,
                        std::uint64_t rails_used, std::uint64_t rails, bool whole_job) {
    Network network = assumed;
    // Beyond 10 ms nothing changes any more, and no product can overflow.
    constexpr std::uint32_t kAlphaMaxNs = 10'000'000;
    if (figures.alpha_ns != 0) {
        const std::uint32_t alpha = figures.alpha_ns < kAlphaMaxNs ? figures.alpha_ns : kAlphaMaxNs;
        network.alpha = ticksFromNs(alpha);
        // The worst edge is sure to take part only where every node does.
        const std::uint32_t worst =
            figures.alpha_worst_ns < kAlphaMaxNs ? figures.alpha_worst_ns : kAlphaMaxNs;
        if (whole_job && worst > alpha) network.worst_extra = ticksFromNs(worst - alpha);
    }
    std::uint64_t beta = figures.beta_mbps;
    if (whole_job && figures.beta_worst_mbps != 0 && figures.beta_worst_mbps < beta)
        beta = figures.beta_worst_mbps;
    beta = beta * rails_used / rails;
    if (beta != 0 && assumed.rate != 0) {
        const Rate rate = rateOf(beta);
        // Better than the link rate promises is no reason to believe in more than NCCL does.
        if (rate > assumed.rate) network.rate = rate;
    }
    return network;
}

/// NCCL groups several operations: a ring's latency counts for each, the others' for each eight.
std::int64_t latencyCount(Algorithm algorithm, int pipe_operations) {
    const std::int64_t operations = pipe_operations < 1      ? 1
                                    : pipe_operations > 1024 ? 1024
                                                             : pipe_operations;
    return algorithm == Algorithm::Ring ? operations : (operations + 7) / 8;
}

/// Steps between nodes as NCCL's formula counts them for ring and tree.
std::int64_t ncclInterSteps(Algorithm algorithm, Collective what, CommSize size) {
    const std::int64_t passages = what == Collective::AllReduce ? 2 : 1;
    return passages * (algorithm == Algorithm::Ring ? size.nodes - 1 : log2Floor(size.nodes));
}

Ticks withSurcharge(Ticks latency, Algorithm algorithm, Protocol protocol, Collective what,
                    bool large) {
    const bool applies = large && algorithm == Algorithm::Ring && protocol == Protocol::Simple &&
                         what == Collective::AllReduce;
    return applies ? latency * 7 / 5 : latency;
}

std::uint64_t between(std::uint64_t a, std::uint64_t b, std::uint64_t over, int octave) {
    return b > a ? a + scaled(b - a, over, octave) : a - scaled(a - b, over, octave, a);
}

}  // namespace

const char* describe(Aside aside) {
    switch (aside) {
        case Aside::No:
            return "not at all";
        case Aside::OneNode:
            return "the communicator is on one node";
        case Aside::Neutral:
            return "the profile is neutral";
        case Aside::Unmeasured:
            return "the profile has neither latencies, bandwidths nor rules";
        case Aside::MoreNodes:
            return "the communicator has more nodes than the profile describes";
        case Aside::BadSize:
            return "NCCL gave an impossible number of ranks or nodes";
        case Aside::BadRules:
            return "the profile's rules cannot be read";
    }
    return "for an unknown reason";
}

bool wayOf(Algorithm algorithm, Collective what, Way& way) {
    const bool gather = what == Collective::AllGather || what == Collective::ReduceScatter;
    if (what == Collective::AllReduce)
        way = algorithm == Algorithm::Tree ? Way::TreeAllReduce : Way::RingAllReduce;
    else
        way = Way::RingGather;
    return what == Collective::AllReduce || (gather && algorithm == Algorithm::Ring);
}

Terms Curve::find(std::uint64_t bytes) const {
    int octave = kFirst;
    if (bytes >> kFirst != 0) octave = 63 - __builtin_clzll(bytes);
    if (octave > kFirst + kPoints - 2) octave = kFirst + kPoints - 2;
    const std::uint64_t start = std::uint64_t{1} << octave;
    const std::uint64_t over = bytes > start ? bytes - start : 0;
    const Terms& low = at[octave - kFirst];
    const Terms& high = at[octave - kFirst + 1];
    Terms terms;
    terms.fixed = static_cast<Ticks>(between(static_cast<std::uint64_t>(low.fixed),
                                             static_cast<std::uint64_t>(high.fixed), over, octave));
    terms.least = static_cast<Ticks>(between(static_cast<std::uint64_t>(low.least),
                                             static_cast<std::uint64_t>(high.least), over, octave));
    terms.share = between(low.share, high.share, over, octave);
    if (terms.share > 1U << 16) terms.share = 1U << 16;
    return terms;
}

Aside makePricing(const FabricProfile& profile, CommSize size, Pricing& out) {
    out = Pricing{};
    out.size = size;
    constexpr std::uint32_t kRanksMax = 1U << 24;
    if (size.nodes == 0 || size.ranks < size.nodes || size.ranks > kRanksMax) return Aside::BadSize;
    if (size.nodes == 1) return Aside::OneNode;
    if (profile.neutral) return Aside::Neutral;
    if (size.nodes > profile.nodes) return Aside::MoreNodes;
    if (!parseRules(profile.rules, out.rules)) return Aside::BadRules;

    const bool whole_job = size.nodes == profile.nodes;
    out.ranks_per_node = (size.ranks + size.nodes - 1) / size.nodes;
    const std::uint32_t rails = profile.rails == 0 ? 1 : profile.rails;
    // A communicator with one rank per node (a data-parallel group beside tensor-parallel ones)
    // drives one rail.
    out.rails = out.ranks_per_node < rails ? out.ranks_per_node : rails;
    out.rail_mbps = profile.rail_nominal_mbps;
    const std::uint64_t nominal =
        std::uint64_t{profile.rail_nominal_mbps} * out.rails * kHealthyShare / 1000;
    if (nominal != 0) out.assumed.rate = rateOf(nominal);
    out.measured[kTree] = measuredNetwork(profile.tree, out.assumed, out.rails, rails, whole_job);
    out.measured[kRing] = measuredNetwork(profile.ring, out.assumed, out.rails, rails, whole_job);
    out.corrects = !(out.measured[kTree] == out.assumed && out.measured[kRing] == out.assumed);
    const bool nothing_measured = profile.ring.alpha_ns == 0 && profile.tree.alpha_ns == 0 &&
                                  profile.ring.beta_mbps == 0 && profile.tree.beta_mbps == 0;
    return nothing_measured && out.rules.count == 0 ? Aside::Unmeasured : Aside::No;
}

void prepareCurves(Pricing& pricing) {
    for (int way = 0; way < kWays; ++way)
        for (int p = 0; p < kProtocols; ++p) {
            Operation operation{kAlgorithmOf[way],  static_cast<Protocol>(p),
                                kCollectiveOf[way], pricing.size,
                                pricing.rails,      std::uint64_t{1} << kLeavingShift};
            const int a = static_cast<int>(operation.algorithm);
            pricing.leaving[way][p] = leavingBytes(operation);
            for (int large = 0; large < 2; ++large)
                pricing.nccl_latency[way][p][large] =
                    ncclLatency(pricing.latency, operation.algorithm, operation.protocol,
                                operation.what, pricing.size, large != 0);
            for (int i = 0; i < Curve::kPoints; ++i) {
                operation.bytes = std::uint64_t{1} << (Curve::kFirst + i);
                pricing.assumed_curve[way][p].at[i] =
                    termsOn(pricing.assumed, pricing.latency, operation);
                pricing.measured_curve[way][p].at[i] =
                    termsOn(pricing.measured[a], pricing.latency, operation);
            }
        }
}

Ticks extraStep(const Pricing& pricing) {
    const Network& ring = pricing.measured[kRing];
    return ring.alpha - pricing.assumed.alpha + ring.worst_extra / (pricing.size.nodes - 1);
}

bool isLarge(CommSize size, std::uint64_t bytes) {
    // NCCL: 64 bytes for each rank and channel. The channels are not known here; with fewer than 16
    // the difference is far below the sizes where Simple can win.
    constexpr std::uint64_t kBytesPerRank = 64 * 16;
    return bytes >= kBytesPerRank * size.ranks;
}

Ticks ncclLatency(const LatencyTable& table, Algorithm algorithm, Protocol protocol,
                  Collective what, CommSize size, bool large) {
    const int a = static_cast<int>(algorithm);
    const int p = static_cast<int>(protocol);
    const std::int64_t inter = ncclInterSteps(algorithm, what, size);
    if (algorithm == Algorithm::Tree) {
        const std::int64_t intra = 2 * (static_cast<std::int64_t>(size.ranks / size.nodes) - 1);
        return table.base[a][p] + intra * table.intra[a][p] + inter * table.inter[a][p];
    }
    const std::int64_t passages = what == Collective::AllReduce ? 2 : 1;
    const std::int64_t steps = passages * (static_cast<std::int64_t>(size.ranks) - 1);
    const Ticks post = protocol == Protocol::Simple ? 3 * table.post : table.post;
    const Ticks intra = table.intra[a][p] > post ? table.intra[a][p] : post;
    // With one rank on each node NCCL takes the tree's step for the ring too.
    const Ticks step = size.ranks == size.nodes ? table.inter[kTree][p] : table.inter[a][p];
    return withSurcharge(table.base[a][p] + (steps - inter) * intra + inter * step, algorithm,
                         protocol, what, large);
}

Ticks writtenShare(const Pricing& pricing, Algorithm algorithm, Protocol protocol, Collective what,
                   std::uint64_t bytes, int pipe_operations) {
    Way way;
    if (pricing.written == 0 || !wayOf(algorithm, what, way)) return 0;
    const Ticks once = ncclInterSteps(algorithm, what, pricing.size) * pricing.written;
    return latencyCount(algorithm, pipe_operations) *
           withSurcharge(once, algorithm, protocol, what, isLarge(pricing.size, bytes));
}

Ticks networkShare(const Pricing& pricing, Algorithm algorithm, Protocol protocol, Collective what,
                   std::uint64_t bytes, int pipe_operations, Ticks price) {
    Way way;
    if (!wayOf(algorithm, what, way)) return 0;
    const int w = static_cast<int>(way);
    const int p = static_cast<int>(protocol);
    const Network& measured = pricing.measured[static_cast<int>(algorithm)];
    if (measured == pricing.assumed) return 0;
    // NCCL's price has a share for bandwidth. Where that is more than the network needs, something
    // else binds (NVLink, a kernel), and a slower network is felt only beyond it.
    const Ticks latency = pricing.nccl_latency[w][p][isLarge(pricing.size, bytes) ? 1 : 0];
    const Ticks bound = price > latency ? price - latency : 0;
    const std::uint64_t leaving = scaled(bytes, pricing.leaving[w][p], kLeavingShift);
    const Ticks before = timeOf(pricing.assumed.rate, leaving);
    const Ticks after = timeOf(measured.rate, leaving);
    const Ticks was =
        timeFrom(pricing.assumed_curve[w][p].find(bytes), before > bound ? before : bound);
    const Ticks is =
        timeFrom(pricing.measured_curve[w][p].find(bytes), after > bound ? after : bound);
    const std::int64_t more = latencyCount(algorithm, pipe_operations) - 1;
    return is - was +
           more * ncclInterSteps(algorithm, what, pricing.size) *
               (measured.alpha - pricing.assumed.alpha);
}

Ticks shadowShare(const Pricing& pricing, Algorithm algorithm, Collective what, std::uint64_t bytes,
                  Ticks price) {
    const Network& measured = pricing.measured[kTree];
    const std::int64_t passages = what == Collective::AllReduce ? 2 : 1;
    const bool tree_like = algorithm == Algorithm::NvlsTree || algorithm == Algorithm::Pat;
    // CollNet and NVLS go up into the switches and down: two passages of one step at most.
    const std::int64_t steps = tree_like ? passages * log2Floor(pricing.size.nodes) : passages;
    const std::uint64_t leaving =
        algorithm == Algorithm::NvlsTree && pricing.size.nodes > 2 ? 2 * bytes : bytes;
    const Ticks before = timeOf(pricing.assumed.rate, leaving);
    const Ticks after = timeOf(measured.rate, leaving);
    const Ticks bound = price > before ? price : before;
    const Ticks slower = after > bound ? after - bound : 0;
    return steps * (measured.alpha - pricing.assumed.alpha) + slower;
}

}  // namespace rdmatune::model
