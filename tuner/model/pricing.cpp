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

/// Steps between nodes as NCCL's formula counts them for ring and tree.
std::int64_t ncclInterSteps(Algorithm algorithm, Collective what, CommSize size) {
    const std::int64_t passages = what == Collective::AllReduce ? 2 : 1;
    return passages * (algorithm == Algorithm::Ring ? size.nodes - 1 : log2Floor(size.nodes));
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
    for (int way = 0; way < kWays; ++way) {
        pricing.nccl_steps[way] =
            ncclInterSteps(kAlgorithmOf[way], kCollectiveOf[way], pricing.size);
        for (int p = 0; p < kProtocols; ++p) {
            Operation operation{kAlgorithmOf[way],  static_cast<Protocol>(p),
                                kCollectiveOf[way], pricing.size,
                                pricing.rails,      std::uint64_t{1} << kLeavingShift};
            const int a = static_cast<int>(operation.algorithm);
            const std::uint64_t leaving = leavingBytes(operation);
            pricing.busy_rate[way][p][0] = scaled(pricing.assumed.rate, leaving, kLeavingShift);
            pricing.busy_rate[way][p][1] = scaled(pricing.measured[a].rate, leaving, kLeavingShift);
            for (int large = 0; large < 2; ++large)
                pricing.nccl_latency[way][p][large] =
                    ncclLatency(pricing.latency, operation.algorithm, operation.protocol,
                                operation.what, pricing.size, large != 0);
            for (int i = 0; i < Curve::kPoints; ++i) {
                operation.bytes = std::uint64_t{1} << (Curve::kFirst + i);
                const Terms assumed = termsOn(pricing.assumed, pricing.latency, operation);
                const Terms measured = termsOn(pricing.measured[a], pricing.latency, operation);
                pricing.curve[way][p].at[i] = {{assumed.fixed, measured.fixed},
                                               {assumed.least, measured.least},
                                               static_cast<Ticks>(assumed.share)};
            }
        }
    }
}

Ticks extraStep(const Pricing& pricing) {
    const Network& ring = pricing.measured[kRing];
    return ring.alpha - pricing.assumed.alpha + ring.worst_extra / (pricing.size.nodes - 1);
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
    const Ticks latency = table.base[a][p] + (steps - inter) * intra + inter * step;
    return large && hasSurcharge(algorithm, protocol, what) ? withSurcharge(latency) : latency;
}

}  // namespace rdmatune::model
