// What was decided and why, as lines: the same for `rdma-tune explain` and for NCCL's log. No
// allocation.
#pragma once

#include "tuner/model/nccl_price.hpp"

namespace rdmatune::model {

/// One size of a table.
struct Explained {
    std::uint64_t bytes = 0;
    FamilyPrices nccl;    ///< by NCCL's formula
    FamilyPrices priced;  ///< with the measured network, and after rules and guards
    Choice nccl_choice;
    Choice choice;
};
/// Prices and choices of one size, as the plugin would make them from NCCL's documented prices.
[[nodiscard]] Explained explain(const Pricing& pricing, const Shape& shape, Collective what,
                                std::uint64_t bytes);

/// The smallest message from which on ring is chosen, to 1/16 of itself, between kSmallest and
/// kLargest; 0 where tree is still chosen at kLargest. `measured`: with the plugin, else NCCL by
/// itself.
inline constexpr std::uint64_t kSmallest = 1024;
inline constexpr std::uint64_t kLargest = std::uint64_t{1} << 33;
[[nodiscard]] std::uint64_t ringFrom(const Pricing& pricing, const Shape& shape, Collective what,
                                     bool measured);

/// A shape to explain with, where only the profile is known: Hopper GPUs behind NVLink.
[[nodiscard]] Shape shapeOf(const Pricing& pricing);

inline constexpr std::size_t kLineMax = 320;
/// "32 ranks on 4 nodes, 8 rails: ring 10.00 us and 190.0 GB/s, tree ... (NCCL assumes 1.00 us,
/// 192.0 GB/s)".
void formatNetwork(const Pricing& pricing, char (&line)[kLineMax]);
/// "allreduce    64K   tree/ll       48.1 us   ring/ll       85.0 us   tree/ll   (NCCL alone:
/// tree/ll)".
void formatRow(const Explained& row, Collective what, char (&line)[kLineMax]);
/// "allreduce: ring from 32M on (NCCL alone: from 64M on)".
void formatCrossing(std::uint64_t measured, std::uint64_t nccl, Collective what,
                    char (&line)[kLineMax]);
/// "64K", "1M", "1000"; the unit is a power of 1024.
void formatSize(std::uint64_t bytes, char (&text)[24]);

}  // namespace rdmatune::model
