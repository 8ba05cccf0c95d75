// NCCL's own price of ring and tree, computed from its documented formula: for explaining, and
// where NCCL shows no table (interface v2). Facts: NCCL 2.28's constants as its v5 interface gives
// them, the formula of its public sources, checked against its recorded tables in the tests. Whole
// numbers only.
#pragma once

#include "tuner/model/pricing.hpp"

namespace rdmatune::model {

enum class Gpu : std::uint8_t { Volta = 0, Ampere = 1, Hopper = 2, Blackwell = 3 };
inline constexpr const char* kGpuNames[] = {"volta", "ampere", "hopper", "blackwell"};

/// What NCCL would find in the nodes. Bandwidths in 10^6 bytes/s.
struct Shape {
    CommSize size;
    std::uint32_t rails = 1;       ///< HCAs that the communicator's ranks of one node can use
    std::uint32_t rail_mbps = 0;   ///< link rate of one rail, as NCCL reads it
    std::uint32_t intra_mbps = 0;  ///< what a ring carries inside the node; 0: the GPU's NVLink
    Gpu gpu = Gpu::Hopper;
    bool nvlink = true;     ///< without it there is no LL128
    bool amd_host = false;  ///< NCCL's limits for LL and for posting differ by the CPU's maker
};

/// Prices of tree and ring in ticks; negative: not available.
struct FamilyPrices {
    Ticks price[2][kProtocols];
};

/// NCCL's prices for a message of `bytes` bytes (for allgather and reducescatter: of all ranks
/// together).
[[nodiscard]] FamilyPrices ncclPrices(const Shape& shape, const LatencyTable& table,
                                      Collective what, std::uint64_t bytes);

/// The same prices with the measured network, as reprice() would make them.
[[nodiscard]] FamilyPrices measuredPrices(const Pricing& pricing, const FamilyPrices& nccl,
                                          Collective what, std::uint64_t bytes);

/// What the model itself expects on the measured network, NCCL's price left aside: the closed form
/// of network.hpp, bound by the shape's kernels.
[[nodiscard]] FamilyPrices modelPrices(const Pricing& pricing, const Shape& shape, Collective what,
                                       std::uint64_t bytes);

/// The cheapest entry; the first of equals, as NCCL does.
[[nodiscard]] Choice cheapest(const FamilyPrices& prices);

/// Writes the prices as NCCL's table of floats (two rows), in microseconds.
void asTable(const FamilyPrices& prices, float (&table)[2][kProtocols]);

}  // namespace rdmatune::model
