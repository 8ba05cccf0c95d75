// Bytes of a PCI function's configuration space, made to order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rdmatune::testing {

struct PciConfig {
    bool pcie = true;
    bool relaxed_ordering = true;
    std::optional<std::uint16_t> acs;  ///< ACS Control Register
    std::optional<bool> ats;           ///< ATS enabled

    /// All 4096 bytes, as root reads them. An ordinary user gets the first 64.
    [[nodiscard]] std::string bytes() const {
        std::string out(pcie ? 4096 : 256, '\0');
        const auto put = [&](std::size_t offset, unsigned value) {
            out[offset] = static_cast<char>(value & 0xffU);
            out[offset + 1] = static_cast<char>(value >> 8U & 0xffU);
        };
        put(0x06, 0x0010);  // Status: has a capability list
        out[0x34] = 0x40;
        put(0x40, 0x6001);  // power management, next at 0x60
        if (pcie) {
            put(0x60, 0x0010);  // PCI Express, last
            put(0x68, relaxed_ordering ? 0x2910 : 0x2900);
            // Extended: error reporting at 0x100, then those asked for.
            std::size_t last = 0x100;
            put(last, 0x0001);
            put(last + 2, 0x0001);
            const auto add = [&](std::size_t at, unsigned id, std::size_t value_at,
                                 unsigned value) {
                put(last + 2, static_cast<unsigned>(at << 4U) | 0x1U);
                put(at, id);
                put(at + 2, 0x0001);
                put(at + value_at, value);
                last = at;
            };
            if (ats) add(0x180, 0x000f, 6, *ats ? 0x8000 : 0x0000);
            if (acs) add(0x220, 0x000d, 6, *acs);
        }
        return out;
    }
};

}  // namespace rdmatune::testing
