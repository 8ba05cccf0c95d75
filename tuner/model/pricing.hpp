// What the measured network adds to NCCL's price of a collective, and the choice that follows.
// docs/tuner.md has the model. Whole numbers only; no allocation, no locks: it runs inside NCCL.
#pragma once

#include "tuner/model/constants.hpp"
#include "tuner/model/rules.hpp"
#include "tuner/profile/profile.hpp"

namespace rdmatune::model {

/// Why a communicator, or one call, is left to NCCL alone.
enum class Aside : std::uint8_t {
    No,
    OneNode,     ///< nothing crosses the network
    Neutral,     ///< the profile asks for no change
    Unmeasured,  ///< the profile has no figures and no rules
    MoreNodes,   ///< the communicator is larger than what was measured
    BadSize,     ///< ranks and nodes make no sense
    BadRules     ///< the profile's rules cannot be read
};
/// A fixed English phrase that completes "standing aside: ".
[[nodiscard]] const char* describe(Aside aside);

/// The network's share for one communicator. Made once; read by any number of threads.
struct Pricing {
    CommSize size;
    std::uint32_t ranks_per_node = 1;  ///< the largest node's, rounded up
    std::uint32_t rails = 1;           ///< rails that this communicator can use
    std::uint32_t rail_mbps = 0;       ///< link rate of one, 10^6 bytes/s; 0: not known

    /// What each step between nodes costs more than NCCL's constants say, [tree, ring]; may be
    /// negative.
    Ticks step[2] = {0, 0};
    /// Of that, what has been written into NCCL's constants already: part of the prices it passes.
    Ticks written = 0;

    /// Time per byte that leaves a node, [tree, ring]: as measured, and as NCCL assumes. 0: not
    /// known.
    Rate measured[2] = {0, 0};
    Rate nominal[2] = {0, 0};

    bool corrects = false;  ///< whether any price changes; else only the rules count

    LatencyTable latency = kDefaultLatencies;  ///< NCCL's, before anything was written
    RuleSet rules;
};

/// Prepares `out` for a communicator. Anything but Aside::No: leave the communicator alone.
/// `out` is written in every case.
[[nodiscard]] Aside makePricing(const FabricProfile& profile, CommSize size, Pricing& out);

/// Steps between nodes on the critical path: what is multiplied with Pricing::step.
[[nodiscard]] std::int64_t interSteps(Algorithm algorithm, Collective what, CommSize size);

/// Bytes that leave one node for each byte of the message, in 1/4096, before the protocol's flags.
[[nodiscard]] std::uint64_t trafficShare(Algorithm algorithm, Collective what, CommSize size);

/// NCCL's own latency (without bandwidth) of ring or tree, in ticks, as far as its constants tell.
[[nodiscard]] Ticks ncclLatency(const LatencyTable& table, Algorithm algorithm, Protocol protocol,
                                Collective what, CommSize size, std::uint64_t bytes);

/// What steps between nodes that take `step` more each add to NCCL's price of ring or tree, in
/// ticks. 0 for Broadcast and Reduce: they exist as a ring only, so it is the same for every
/// protocol.
[[nodiscard]] Ticks latencyShare(CommSize size, Algorithm algorithm, Protocol protocol,
                                 Collective what, std::uint64_t bytes, int pipe_operations,
                                 Ticks step);

/// What the measured bandwidth adds to NCCL's price of ring or tree (`price`, before anything was
/// written into the constants), in ticks; never negative, 0 where nothing was measured.
[[nodiscard]] Ticks bandwidthShare(const Pricing& pricing, Algorithm algorithm, Protocol protocol,
                                   Collective what, std::uint64_t bytes, Ticks price);

/// One entry of a table of prices.
struct Choice {
    std::int8_t algorithm = -1;  ///< -1: none
    std::int8_t protocol = -1;
    bool operator==(const Choice&) const = default;
};
/// NCCL's rule: the smallest price that is not negative; the first of equals.
[[nodiscard]] Choice cheapest(const float* table, int algorithms, int protocols);

/// Re-prices ring and tree in NCCL's table: float[algorithms][protocols], microseconds, negative:
/// not available. Leaves everything as it is (and returns false) when a value makes no sense.
/// Entries of other algorithms change only where a rule pins them.
bool reprice(const Pricing& pricing, Collective what, std::uint64_t bytes, int pipe_operations,
             float* table, int algorithms, int protocols);

}  // namespace rdmatune::model
