// What the measured network adds to NCCL's price of a collective, and the choice that follows.
// docs/tuner.md has the model. Whole numbers only; no allocation, no locks: it runs inside NCCL.
#pragma once

#include "tuner/model/network.hpp"
#include "tuner/model/rules.hpp"
#include "tuner/profile/profile.hpp"

namespace rdmatune::model {

/// Why a communicator is left to NCCL alone.
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

/// Ring or tree with one kind of collective: what is prepared once for a communicator.
enum class Way : std::uint8_t { TreeAllReduce = 0, RingAllReduce = 1, RingGather = 2 };
inline constexpr int kWays = 3;
/// False for what is never re-priced: Broadcast and Reduce (a ring only: nothing to choose), tree
/// with collectives that NCCL does not run as a tree.
[[nodiscard]] bool wayOf(Algorithm algorithm, Collective what, Way& way);

/// A quantity between two powers of two of the message: at the lower one, and what the octave adds.
struct Line {
    Ticks at;
    Ticks step;
    /// `fraction`: of the way to the next power, in 2^-16.
    [[nodiscard]] Ticks value(Ticks fraction) const { return at + (step * fraction >> 16); }
};
/// A share of something, in 2^-12.
inline constexpr int kShareBits = 12;

/// The closed form's terms (network.hpp) of one way and protocol for messages of one octave,
/// prepared so that a call needs no division: with the measured network [0] and with the one that
/// NCCL assumes [1].
struct OctaveTerms {
    Line floor[2];
    Line fixed[2];
    Line kernels;    ///< 2^-12
    Ticks unfilled;  ///< what is left of NCCL's bandwidth term without its factor for middle sizes,
                     ///< 2^-12
};
/// The same for messages of any size: NCCL's own figures.
struct NcclFigures {
    Ticks base = 0;
    Ticks latency[2] = {};  ///< small messages, larger ones
    Ticks written[2] = {};  ///< what Pricing::written has added to NCCL's price
    Rate network = 0;  ///< per byte: up to here NCCL's bandwidth term is the network's. 0: not so
};

/// The network's share for one communicator. Made once; read by any number of threads.
struct Pricing {
    CommSize size;
    std::uint32_t ranks_per_node = 1;  ///< the largest node's, rounded up
    std::uint32_t rails = 1;           ///< rails that this communicator can use
    std::uint32_t rail_mbps = 0;       ///< link rate of one, 10^6 bytes/s; 0: not known

    Network assumed;        ///< the network that NCCL's constants stand for, with these rails
    Network measured[2];    ///< [tree, ring]
    bool corrects = false;  ///< whether any price changes; else only the rules count

    /// What a step between nodes costs more, as written into NCCL's constants: part of the prices
    /// it passes.
    Ticks written = 0;
    LatencyTable latency = kDefaultLatencies;  ///< NCCL's, before anything was written

    /// How much of NCCL's price counts beside the model's, in 2^-10: all where the network is as it
    /// assumes, nothing where it is far from that (kFarAlphaNs).
    Ticks kept = 1 << kKeptBits;
    static constexpr int kKeptBits = 10;

    RuleSet rules;

    static constexpr int kFirst = 8;  // octaves from 256 bytes; below, that is taken
    static constexpr int kLast = 48;  // 2^48 bytes: more is not believed
    std::uint64_t large_from = 0;     ///< where NCCL's surcharge for larger messages begins, bytes
    std::int64_t nccl_steps[kWays] = {};  ///< between nodes, as NCCL's formula counts them
    NcclFigures given[kWays][kProtocols];
    OctaveTerms octave[kLast - kFirst + 1][kWays][kProtocols];
};

/// Reads the profile for a communicator. Anything but Aside::No: leave the communicator alone.
/// `out` is written in every case, but for its octaves.
[[nodiscard]] Aside makePricing(const FabricProfile& profile, CommSize size, Pricing& out);

/// Fills in what calls need, once `latency` and `written` are what they shall be.
void prepareOctaves(Pricing& pricing);

/// What a ring's step between nodes takes more than NCCL's constants say, the worst edge's share
/// included.
[[nodiscard]] Ticks extraStep(const Pricing& pricing);

/// NCCL's own latency (without bandwidth) of ring or tree, in ticks, as far as its constants tell.
/// `large`: whether NCCL adds its surcharge for larger messages (ring with Simple, allreduce).
[[nodiscard]] Ticks ncclLatency(const LatencyTable& table, Algorithm algorithm, Protocol protocol,
                                Collective what, CommSize size, bool large);
[[nodiscard]] constexpr bool hasSurcharge(Algorithm algorithm, Protocol protocol, Collective what) {
    return algorithm == Algorithm::Ring && protocol == Protocol::Simple &&
           what == Collective::AllReduce;
}
[[nodiscard]] constexpr Ticks withSurcharge(Ticks latency) {
    return latency * 7 / 5;
}
/// Where that surcharge begins, as far as it can be known from outside, in bytes: NCCL has 64 for
/// each rank and channel. The channels are not known here; with fewer than 16 the difference is far
/// below the sizes where Simple can win.
[[nodiscard]] constexpr std::uint64_t largeFrom(std::uint32_t ranks) {
    return std::uint64_t{64} * 16 * ranks;
}

/// What the measured network changes in NCCL's price of ring or tree (`price`, before anything was
/// written into the constants), in ticks. Exactly 0 where the network is as NCCL assumes.
[[nodiscard]] Ticks networkShare(const Pricing& pricing, Algorithm algorithm, Protocol protocol,
                                 Collective what, std::uint64_t bytes, int pipe_operations,
                                 Ticks price);

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
