// A PCI function's configuration space: the few registers that decide whether one device reaches
// another without a detour.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rdmatune {

/// What configuration space says. Absent values: the function does not have the capability, or
/// too little of the space was readable (`visible_bytes`).
struct ConfigSpace {
    /// Bytes that could be read: 4096 as root, 64 as an ordinary user, 0 when not at all.
    int visible_bytes = 0;
    bool pcie = false;                     ///< has a PCI Express capability
    std::optional<std::uint16_t> acs;      ///< ACS Control Register; absent: none, or not seen
    std::optional<bool> relaxed_ordering;  ///< Device Control: Enable Relaxed Ordering
    std::optional<bool> ats;               ///< ATS Control: enabled
    bool operator==(const ConfigSpace&) const = default;

    /// Whether the extended capabilities could be seen, so that an absent `acs` means "has none".
    /// A function of conventional PCI ends after 256 bytes and has none either.
    [[nodiscard]] bool extendedSeen() const {
        return visible_bytes >= 4096 || (visible_bytes >= 256 && !pcie);
    }
};

/// Bits of the ACS Control Register (PCI Express Base Specification 5.0, 7.7.8.3).
inline constexpr std::uint16_t kAcsSourceValidation = 0x01;
inline constexpr std::uint16_t kAcsRequestRedirect = 0x04;
inline constexpr std::uint16_t kAcsCompletionRedirect = 0x08;
inline constexpr std::uint16_t kAcsEgressControl = 0x20;
inline constexpr std::uint16_t kAcsDirectTranslated = 0x40;
/// The bits that send a peer's packet up to the root complex, as Linux counts them too
/// (drivers/pci/p2pdma.c, pci_bridge_has_acs_redir). Source validation alone redirects nothing.
inline constexpr std::uint16_t kAcsRedirect =
    kAcsRequestRedirect | kAcsCompletionRedirect | kAcsEgressControl;

/// The redirecting bits that are set, as lspci names them: "ReqRedir+ CmpltRedir+".
[[nodiscard]] std::string acsRedirectNames(std::uint16_t acs);

/// Reads the bytes of /sys/bus/pci/devices/ADDRESS/config, however many there are. Any bytes are
/// safe: capability lists that loop or point outside are left where they do.
[[nodiscard]] ConfigSpace parseConfigSpace(std::string_view bytes);

}  // namespace rdmatune
