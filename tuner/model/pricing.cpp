// The network's share: steps, bytes, and what each costs more than NCCL believes.
#include "tuner/model/pricing.hpp"

namespace rdmatune::model {
namespace {

constexpr int kTree = static_cast<int>(Algorithm::Tree);
constexpr int kRing = static_cast<int>(Algorithm::Ring);
constexpr int kSimple = static_cast<int>(Protocol::Simple);

/// Ring with Simple is priced at 1.4 times its latency for larger messages ("plateau"): from 64
/// bytes for each rank and channel on. The channels are not known here; with fewer than 16 the
/// difference is far below the sizes where Simple can win.
constexpr std::uint64_t kPlateauBytes = 64 * 16;

Ticks withPlateau(Ticks latency, int algorithm, int protocol, Collective what, CommSize size,
                  std::uint64_t bytes) {
    const bool plateau = algorithm == kRing && protocol == kSimple &&
                         what == Collective::AllReduce && bytes / size.ranks >= kPlateauBytes;
    return plateau ? latency * 7 / 5 : latency;
}

/// Extra time per step between nodes: everything above the reference, and the worst edge once for
/// each passage of the whole chain, spread over its steps.
Ticks stepOf(const PatternFigures& figures, std::int64_t steps_per_passage, bool whole_job) {
    if (figures.alpha_ns == 0) return 0;
    std::int64_t extra = static_cast<std::int64_t>(figures.alpha_ns) - kReferenceAlphaNs;
    if (whole_job && figures.alpha_worst_ns > figures.alpha_ns)
        extra += (figures.alpha_worst_ns - figures.alpha_ns) / steps_per_passage;
    // Beyond this nothing changes any more, and no product below can overflow.
    constexpr std::int64_t kExtraMaxNs = 10'000'000;
    return ticksFromNs(extra < kExtraMaxNs ? extra : kExtraMaxNs);
}

/// 10^6 bytes/s of a node over the rails in use; the worst edge's where it is sure to take part.
std::uint64_t betaOf(const PatternFigures& figures, bool whole_job) {
    std::uint64_t beta = figures.beta_mbps;
    if (whole_job && figures.beta_worst_mbps != 0 && figures.beta_worst_mbps < beta)
        beta = figures.beta_worst_mbps;
    return beta;
}

/// NCCL groups several operations: a ring's latency counts for each, the others' for each eight.
std::int64_t latencyCount(int algorithm, int pipe_operations) {
    const std::int64_t operations = pipe_operations < 1      ? 1
                                    : pipe_operations > 1024 ? 1024
                                                             : pipe_operations;
    return algorithm == kRing ? operations : (operations + 7) / 8;
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

    out.step[kTree] = stepOf(profile.tree, log2Floor(size.nodes), whole_job);
    out.step[kRing] = stepOf(profile.ring, size.nodes - 1, whole_job);
    const PatternFigures* const figures[2] = {&profile.tree, &profile.ring};
    for (int a = 0; a < 2; ++a) {
        const std::uint64_t beta = betaOf(*figures[a], whole_job) * out.rails / rails;
        const std::uint64_t nominal =
            std::uint64_t{profile.rail_nominal_mbps} * out.rails * kHealthyShare / 1000;
        if (beta == 0 || nominal == 0) continue;
        out.measured[a] = rateOf(beta);
        out.nominal[a] = rateOf(nominal);
    }
    const bool nothing_measured = profile.ring.alpha_ns == 0 && profile.tree.alpha_ns == 0 &&
                                  out.measured[kTree] == 0 && out.measured[kRing] == 0;
    out.corrects = out.step[kTree] != 0 || out.step[kRing] != 0 ||
                   out.measured[kTree] > out.nominal[kTree] ||
                   out.measured[kRing] > out.nominal[kRing];
    return nothing_measured && out.rules.count == 0 ? Aside::Unmeasured : Aside::No;
}

std::int64_t interSteps(Algorithm algorithm, Collective what, CommSize size) {
    const std::int64_t passages = what == Collective::AllReduce ? 2 : 1;
    switch (algorithm) {
        case Algorithm::Ring:
            return passages * (size.nodes - 1);
        case Algorithm::Tree:
        case Algorithm::NvlsTree:
        case Algorithm::Pat:
            return passages * log2Floor(size.nodes);
        case Algorithm::Nvls:
        case Algorithm::CollNetDirect:
        case Algorithm::CollNetChain:
            return passages;  // up into the switches, and down
    }
    return 0;
}

std::uint64_t trafficShare(Algorithm algorithm, Collective what, CommSize size) {
    constexpr std::uint64_t kOne = 4096;
    const std::uint64_t all_but_own = kOne - kOne / size.ranks;
    switch (algorithm) {
        case Algorithm::Ring:
            if (what == Collective::AllReduce) return 2 * all_but_own;
            return what == Collective::AllGather || what == Collective::ReduceScatter ? all_but_own
                                                                                      : kOne;
        case Algorithm::Tree:
        case Algorithm::NvlsTree:
            // Inner node of one tree: half the message up, half down to each of two children; leaf
            // of the other: half up. With two nodes there is one edge in each tree: half up, half
            // down.
            return size.nodes == 2 ? kOne : 2 * kOne;
        case Algorithm::Pat:
            return all_but_own;
        case Algorithm::Nvls:
        case Algorithm::CollNetDirect:
        case Algorithm::CollNetChain:
            return kOne;
    }
    return kOne;
}

Ticks ncclLatency(const LatencyTable& table, Algorithm algorithm, Protocol protocol,
                  Collective what, CommSize size, std::uint64_t bytes) {
    const int a = static_cast<int>(algorithm);
    const int p = static_cast<int>(protocol);
    const std::int64_t inter = interSteps(algorithm, what, size);
    if (algorithm == Algorithm::Tree) {
        const std::int64_t intra = 2 * (static_cast<std::int64_t>(size.ranks / size.nodes) - 1);
        return table.base[a][p] + intra * table.intra[a][p] + inter * table.inter[a][p];
    }
    const std::int64_t passages = what == Collective::AllReduce ? 2 : 1;
    const std::int64_t steps = passages * (static_cast<std::int64_t>(size.ranks) - 1);
    const Ticks overhead = p == kSimple ? 3 * table.post : table.post;
    const Ticks intra = table.intra[a][p] > overhead ? table.intra[a][p] : overhead;
    // With one rank on each node NCCL takes the tree's step for the ring too.
    const Ticks step = size.ranks == size.nodes ? table.inter[kTree][p] : table.inter[a][p];
    return withPlateau(table.base[a][p] + (steps - inter) * intra + inter * step, a, p, what, size,
                       bytes);
}

Ticks latencyShare(CommSize size, Algorithm algorithm, Protocol protocol, Collective what,
                   std::uint64_t bytes, int pipe_operations, Ticks step) {
    if (what == Collective::Broadcast || what == Collective::Reduce) return 0;
    const int a = static_cast<int>(algorithm);
    const Ticks once = withPlateau(interSteps(algorithm, what, size) * step, a,
                                   static_cast<int>(protocol), what, size, bytes);
    return latencyCount(a, pipe_operations) * once;
}

Ticks bandwidthShare(const Pricing& pricing, Algorithm algorithm, Protocol protocol,
                     Collective what, std::uint64_t bytes, Ticks price) {
    const int a = static_cast<int>(algorithm);
    if (what == Collective::Broadcast || what == Collective::Reduce) return 0;
    if (pricing.measured[a] <= pricing.nominal[a]) return 0;

    // The bytes on the wire: LL has a flag of four bytes with every four, LL128 of eight with every
    // 120.
    const std::uint64_t share = trafficShare(algorithm, what, pricing.size);
    const std::uint64_t flagged = protocol == Protocol::LL      ? share * 2
                                  : protocol == Protocol::LL128 ? share * 16 / 15
                                                                : share;
    const std::uint64_t wire = scaled(bytes, flagged, 12);
    // NCCL's price has a share for bandwidth. Where that is larger than what the nominal network
    // needs, something else binds (NVLink, the protocol), and a slower network is felt only beyond
    // it.
    const Ticks latency =
        ncclLatency(pricing.latency, algorithm, protocol, what, pricing.size, bytes);
    const Ticks priced = price > latency ? price - latency : 0;
    const Ticks expected = timeOf(pricing.nominal[a], wire);
    const Ticks bound = priced > expected ? priced : expected;
    const Ticks needed = timeOf(pricing.measured[a], wire);
    return needed > bound ? needed - bound : 0;
}

}  // namespace rdmatune::model
