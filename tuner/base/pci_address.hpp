// A PCI function's address, as the kernel, CUDA and NCCL write it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rdmatune {

/// domain:bus:device.function. Order is PCI order, the order in which this project counts
/// GPUs and HCAs, and CUDA does with CUDA_DEVICE_ORDER=PCI_BUS_ID.
struct PciAddress {
    std::uint32_t domain = 0;
    std::uint8_t bus = 0;
    std::uint8_t device = 0;
    std::uint8_t function = 0;

    auto operator<=>(const PciAddress&) const = default;  // NOLINT(modernize-use-nullptr): its 0

    /// "0000:03:00.0", lower case; the domain has at least four digits.
    [[nodiscard]] std::string str() const;

    /// Reads "0000:03:00.0", "03:00.0" (domain 0), "00000000:03:00.0" (nvidia-smi, /proc) and any
    /// letter case. Nothing for anything else: trailing text, device above 1f, function above 7.
    [[nodiscard]] static std::optional<PciAddress> parse(std::string_view text);
};

}  // namespace rdmatune
