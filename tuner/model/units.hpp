// Whole-number time. Costs and corrections are counted in 1/1024 microsecond, so that every build
// on every CPU computes the same bits: there is no rounding for a compiler to choose. 1024 and not
// 1000 because NCCL's floats convert to it exactly.
#pragma once

#include <cstdint>

namespace rdmatune::model {

/// 1/1024 microsecond.
using Ticks = std::int64_t;
inline constexpr Ticks kTicksPerUs = 1024;
/// No cost beyond this is believed (about 35 years).
inline constexpr Ticks kTicksMax = Ticks{1} << 60;

/// Nanoseconds, towards zero.
[[nodiscard]] constexpr Ticks ticksFromNs(std::int64_t ns) {
    return ns * kTicksPerUs / 1000;
}

/// A price of NCCL's in microseconds, cut to whole ticks. The product is exact: a power of two only
/// moves the exponent. The caller has checked that it is finite and below kTicksMax.
[[nodiscard]] inline Ticks ticksFromUs(float us) {
    return static_cast<Ticks>(us * static_cast<float>(kTicksPerUs));
}

/// Back to NCCL's form; one rounding, to the nearest float.
[[nodiscard]] inline float usFromTicks(Ticks ticks) {
    return static_cast<float>(ticks) * (1.0F / static_cast<float>(kTicksPerUs));
}

/// Time per byte, in 2^-32 ticks: what a whole number can hold of microseconds per terabyte.
using Rate = std::uint64_t;

/// Of a link of `mbps` million bytes per second (that is: bytes per microsecond), above 0.
[[nodiscard]] constexpr Rate rateOf(std::uint64_t mbps) {
    return (std::uint64_t{1} << 42) / mbps;
}

__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

/// a * b / 2^shift without overflow on the way, cut off at `most`.
[[nodiscard]] constexpr std::uint64_t scaled(std::uint64_t a, std::uint64_t b, int shift,
                                             std::uint64_t most = UINT64_MAX) {
    const Wide product = static_cast<Wide>(a) * b >> shift;
    return product > most ? most : static_cast<std::uint64_t>(product);
}

/// How long `bytes` take. At most kTicksMax.
[[nodiscard]] constexpr Ticks timeOf(Rate rate, std::uint64_t bytes) {
    return static_cast<Ticks>(scaled(rate, bytes, 32, static_cast<std::uint64_t>(kTicksMax)));
}

/// More than any rounding to NCCL's floats (24 bits) can hide: what sets two prices surely apart.
[[nodiscard]] constexpr Ticks marginOf(Ticks price) {
    return (price >> 20) + 1;
}

/// The largest whole number not above log2(n); n above 0.
[[nodiscard]] constexpr int log2Floor(std::uint32_t n) {
    int log = 0;
    while ((n >>= 1) != 0) ++log;
    return log;
}

}  // namespace rdmatune::model
