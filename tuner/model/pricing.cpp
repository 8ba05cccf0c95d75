// From a profile to what the network adds to NCCL's prices.
#include "tuner/model/pricing.hpp"

namespace rdmatune::model {
namespace {

constexpr int kTree = static_cast<int>(Algorithm::Tree);
constexpr int kRing = static_cast<int>(Algorithm::Ring);
constexpr Algorithm kAlgorithmOf[kWays] = {Algorithm::Tree, Algorithm::Ring, Algorithm::Ring};
constexpr Collective kCollectiveOf[kWays] = {Collective::AllReduce, Collective::AllReduce,
                                             Collective::AllGather};

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

constexpr Ticks kLatencyMost = Ticks{1} << 45;  // nine hours

/// How far a measured network is from the assumed one, in 2^-Pricing::kKeptBits of "far".
Ticks distance(const Network& measured, const Network& assumed, std::uint32_t nodes) {
    constexpr Ticks kFar = ticksFromNs(kFarAlphaNs);
    const Ticks alpha =
        measured.alpha - assumed.alpha + measured.worst_extra / static_cast<Ticks>(nodes - 1);
    Ticks far = ((alpha < 0 ? -alpha : alpha) << Pricing::kKeptBits) / kFar;
    if (assumed.rate != 0)
        far += static_cast<Ticks>(
            ((measured.rate - assumed.rate) * kFarRateParts << Pricing::kKeptBits) / assumed.rate);
    return far;
}

Line lineBetween(Ticks at, Ticks next) {
    return {at, next - at};
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
    for (const Network& network : out.measured) {
        const Ticks far = distance(network, out.assumed, size.nodes);
        const Ticks kept = far >= 1 << Pricing::kKeptBits ? 0 : (1 << Pricing::kKeptBits) - far;
        if (kept < out.kept) out.kept = kept;
    }
    const bool nothing_measured = profile.ring.alpha_ns == 0 && profile.tree.alpha_ns == 0 &&
                                  profile.ring.beta_mbps == 0 && profile.tree.beta_mbps == 0;
    return nothing_measured && out.rules.count == 0 ? Aside::Unmeasured : Aside::No;
}

void prepareOctaves(Pricing& pricing) {
    pricing.large_from = largeFrom(pricing.size.ranks);
    for (int way = 0; way < kWays; ++way) {
        const Algorithm algorithm = kAlgorithmOf[way];
        const int a = static_cast<int>(algorithm);
        const bool tree = algorithm == Algorithm::Tree;
        pricing.nccl_steps[way] = ncclInterSteps(algorithm, kCollectiveOf[way], pricing.size);
        for (int p = 0; p < kProtocols; ++p) {
            Operation operation{algorithm,          static_cast<Protocol>(p),
                                kCollectiveOf[way], pricing.size,
                                pricing.rails,      0};
            NcclFigures& given = pricing.given[way][p];
            given.base = pricing.latency.base[a][p];
            const Ticks written = pricing.nccl_steps[way] * pricing.written;
            for (int large = 0; large < 2; ++large) {
                const Ticks latency = ncclLatency(pricing.latency, algorithm, operation.protocol,
                                                  operation.what, pricing.size, large);
                // Counted again for each operation that NCCL groups, up to 1024 times.
                given.latency[large] = latency < kLatencyMost ? latency : kLatencyMost;
                const bool more =
                    large && hasSurcharge(algorithm, operation.protocol, operation.what);
                given.written[large] = more ? withSurcharge(written) : written;
            }
            // With two nodes NCCL takes the inside of a node for what bounds a tree. The plain tree
            // pattern is for nodes with a rail for each of eight GPUs.
            if (tree && pricing.size.nodes > 2) {
                const std::uint64_t pattern = pricing.rails >= kPlainTreeRails ? kPlainTree : 1000;
                given.network =
                    2 * pricing.assumed.rate * 1000 / kTreeOfNetwork[p] * 1000 / pattern;
            }
            Terms last[2];
            for (int octave = Pricing::kFirst; octave <= Pricing::kLast + 1; ++octave) {
                operation.bytes = std::uint64_t{1} << octave;
                const Terms terms[2] = {termsOn(pricing.measured[a], pricing.latency, operation),
                                        termsOn(pricing.assumed, pricing.latency, operation)};
                if (octave > Pricing::kFirst) {
                    OctaveTerms& out = pricing.octave[octave - 1 - Pricing::kFirst][way][p];
                    for (int i = 0; i < 2; ++i) {
                        out.floor[i] = lineBetween(last[i].floor, terms[i].floor);
                        out.fixed[i] = lineBetween(last[i].fixed, terms[i].fixed);
                    }
                    out.kernels =
                        lineBetween(static_cast<Ticks>(last[0].kernels >> (16 - kShareBits)),
                                    static_cast<Ticks>(terms[0].kernels >> (16 - kShareBits)));
                    out.unfilled =
                        tree ? static_cast<Ticks>((treeShare(p, octave - 1) << kShareBits) / 10)
                             : 1 << kShareBits;
                }
                last[0] = terms[0];
                last[1] = terms[1];
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
