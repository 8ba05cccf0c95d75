// The price of one entry of tree or ring with the measured network: what a call does for each of
// them. Only reprice.cpp includes this; a header so that the compiler can put it into the loop.
#pragma once

#include "tuner/model/pricing.hpp"

namespace rdmatune::model {

/// One call, as its steps below see it.
struct Call {
    const Pricing& pricing;
    Collective what;
    std::uint64_t bytes;
    int octave;
    Ticks fraction;           // of the way to the next power of two, in 2^-16
    int large;                // 1: with NCCL's surcharge for ring with Simple
    std::int64_t operations;  // that NCCL has grouped
};

inline Call callOf(const Pricing& pricing, Collective what, std::uint64_t bytes,
                   int pipe_operations) {
    const std::int64_t operations = pipe_operations < 1      ? 1
                                    : pipe_operations > 1024 ? 1024
                                                             : pipe_operations;
    int octave = 63 - __builtin_clzll(bytes);
    Ticks fraction = 0;
    if (octave < Pricing::kFirst)
        octave = Pricing::kFirst;
    else  // the bits below the highest, as 16 of them
        fraction = static_cast<Ticks>((bytes << (63 - octave) << 1) >> 48);
    return {pricing,   what, bytes, octave - Pricing::kFirst, fraction, bytes >= pricing.large_from,
            operations};
}

/// How often NCCL counts a latency: a ring's for each operation, the others' for each eight.
inline std::int64_t latencyCount(const Call& call, Way way) {
    return way == Way::TreeAllReduce ? (call.operations + 7) / 8 : call.operations;
}

/// What everything but the network needs of a tree, as far as NCCL's bandwidth term shows it.
inline Ticks boundOf(const NcclFigures& given, const OctaveTerms& terms, std::uint64_t bytes,
                     Ticks fraction, Ticks bandwidth) {
    // Prices are below 2^50 ticks: there is room for the 12 bits of a share and one more.
    bandwidth = bandwidth * terms.unfilled >> kShareBits;
    // Up to NCCL's own price of the network that is what the term stands for, and says nothing of
    // the rest; clearly above, it is the rest. 17: all of it from one part in 16 above.
    const auto network = static_cast<Ticks>(static_cast<Wide>(given.network) * bytes >> 32);
    const Ticks above = bandwidth > network ? 17 * (bandwidth - network) : 0;
    bandwidth = above < bandwidth ? above : bandwidth;
    return bandwidth * terms.kernels.value(fraction) >> kShareBits;
}

template <int kWhich>
inline Ticks timeOf(const OctaveTerms& terms, Ticks fraction, Ticks bound) {
    const Ticks floor = terms.floor[kWhich].value(fraction);
    return terms.fixed[kWhich].value(fraction) + (bound > floor ? bound : floor);
}

/// The price with the measured network: the closed form, and of what NCCL's own price has beyond it
/// on the network that it assumes, the part that still counts.
template <bool kIsTree>
inline Ticks priced(const NcclFigures& given, const OctaveTerms& terms, const Call& call,
                    Ticks kept, Ticks nccl) {
    // NCCL's price has a share for bandwidth. Where that is more than the network needs, something
    // else binds (NVLink, a kernel), and a slower network is felt only beyond it.
    const Ticks latency = given.latency[call.large];
    Ticks bound = nccl > latency ? nccl - latency : 0;
    if constexpr (kIsTree) bound = boundOf(given, terms, call.bytes, call.fraction, bound);
    Ticks price = given.base + timeOf<0>(terms, call.fraction, bound);
    if (kept != 0) {
        const Ticks beyond = nccl - given.base - timeOf<1>(terms, call.fraction, bound);
        price += beyond * kept >> Pricing::kKeptBits;
    }
    return price;
}

/// Latencies that NCCL counts again for grouped operations: its own, and what the network adds to
/// them.
struct Again {
    Ticks nccl = 0;
    Ticks added = 0;
};
inline Again againOf(const Call& call, Way way, const NcclFigures& given) {
    const std::int64_t again = latencyCount(call, way) - 1;
    const Pricing& pricing = call.pricing;
    const auto pattern = way == Way::TreeAllReduce ? Algorithm::Tree : Algorithm::Ring;
    const Network& measured = pricing.measured[static_cast<int>(pattern)];
    return {again * given.latency[call.large], again * pricing.nccl_steps[static_cast<int>(way)] *
                                                   (measured.alpha - pricing.assumed.alpha)};
}

/// The price of one entry, whatever NCCL has grouped. `nccl`: before anything was written.
template <bool kIsTree>
inline Ticks pricedAny(const Call& call, Way way, const NcclFigures& given,
                       const OctaveTerms& terms, Ticks kept, Ticks nccl) {
    if (call.operations == 1) [[likely]]
        return priced<kIsTree>(given, terms, call, kept, nccl);
    const Again again = againOf(call, way, given);
    return priced<kIsTree>(given, terms, call, kept, nccl - again.nccl) + again.nccl + again.added;
}

}  // namespace rdmatune::model
