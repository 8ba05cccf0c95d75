// What the simulator takes as given of a rank: NCCL 2.28's published constants for Hopper GPUs
// behind NVLink, one rail for each rank. Latencies between nodes stand for an InfiniBand whose own
// part is kOwnAlphaUs.
#pragma once

#include "simulator.hpp"

namespace simulation {

enum class Protocol { LL = 0, LL128 = 1, Simple = 2 };

/// One-way latency of the InfiniBand that the constants were taken on, in us.
inline constexpr double kOwnAlphaUs = 1.0;

struct Cluster {
    int nodes = 2;
    int ranks_per_node = 8;
    double rail_gbs = 50;  ///< what one rail can do at best, GB/s; one rail for each rank
};

[[nodiscard]] inline double channelsOf(const Cluster& c) {
    return c.ranks_per_node > 4 ? c.ranks_per_node : 4;
}

[[nodiscard]] inline Local localOfRing(const Cluster& c, Protocol protocol) {
    constexpr double kBase[] = {6.6, 14, 8.4};
    constexpr double kIntra[] = {1.0, 1.9,
                                 3.4};  // LL: what the host needs to post, 1 us, and not 0.6 us
    constexpr double kInter[] = {2.7, 4.0, 14.0};
    constexpr double kInterAlone[] = {5.0, 8.5, 14.0};  // one rank per node: nothing hides the step
    constexpr double kSlot[] = {32e3, 576e3, 2e6};
    constexpr double kWire[] = {2, 16.0 / 15, 1};
    const double channels = channelsOf(c);
    const double rank[] = {c.nodes == 2 ? 39.0 : 20.4, channels * 36.7, 400};
    const int p = static_cast<int>(protocol);
    Local local;
    local.base_us = kBase[p];
    local.intra_hop_us = kIntra[p];
    local.inter_hop_us = (c.ranks_per_node == 1 ? kInterAlone[p] : kInter[p]) - kOwnAlphaUs;
    local.rank_gbs = rank[p];
    local.intra_gbs = 400;
    local.wire = kWire[p];
    local.chunk_bytes = kSlot[p] * channels;
    local.streams = protocol != Protocol::Simple;
    // Simple sends a chunk in two parts. For LL and LL128 the two parts stand for channels that
    // share a NIC.
    local.slices = 2;
    local.slots = protocol == Protocol::Simple ? 4 : 16;
    return local;
}

[[nodiscard]] inline Local localOfTree(const Cluster& c, Protocol protocol) {
    constexpr double kBase[] = {6.8, 14, 8.4};
    constexpr double kIntra[] = {0.6, 1.25, 4.0};
    constexpr double kInter[] = {5.0, 8.5, 14.0};
    constexpr double kSlot[] = {32e3, 576e3, 512e3};
    constexpr double kLeast[] = {8e3, 64e3, 64e3};
    constexpr double kWire[] = {2, 16.0 / 15, 1};
    const double channels = channelsOf(c);
    // Message bytes per second: half of what NCCL counts for the bus, and 15 % less with eight GPUs
    // behind NVSwitch.
    const double pattern = c.ranks_per_node >= 8 ? 0.85 : 1;
    const double simple = channels * (c.nodes == 2 ? 41.4 : 36.0) / 2 * pattern;
    const double ll128 = channels * (c.nodes == 2 ? 36.7 : 29.0) / 2 * pattern;
    const double ll = (c.nodes == 2 ? 39.0 : 20.4) / 2 * pattern;
    const double rank[] = {ll, ll128, simple};
    const int p = static_cast<int>(protocol);
    Local local;
    local.base_us = kBase[p];
    local.intra_hop_us = kIntra[p];
    local.inter_hop_us = kInter[p] - kOwnAlphaUs;
    local.rank_gbs = rank[p];
    local.intra_gbs = 400;
    local.wire = kWire[p];
    local.chunk_bytes = kSlot[p] * channels;
    local.least_chunk_bytes = kLeast[p] * channels;
    local.streams = protocol != Protocol::Simple;
    local.slots = 8;
    return local;
}

}  // namespace simulation
