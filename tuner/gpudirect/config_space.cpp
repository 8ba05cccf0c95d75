#include "tuner/gpudirect/config_space.hpp"

namespace rdmatune {
namespace {

// Offsets and numbers from the PCI Local Bus Specification 3.0 (6.1, 6.7) and the PCI Express Base
// Specification 5.0 (7.5.3, 7.6.3, 7.7.8, 10.5.1).
constexpr std::size_t kStatus = 0x06;
constexpr std::uint16_t kStatusHasCapabilities = 0x0010;
constexpr std::size_t kCapabilityPointer = 0x34;
constexpr std::size_t kConventionalEnd = 256;
constexpr std::uint8_t kCapabilityPcie = 0x10;
constexpr std::size_t kPcieDeviceControl = 0x08;
constexpr std::uint16_t kDeviceControlRelaxedOrdering = 0x0010;
constexpr std::size_t kExtendedStart = 0x100;
constexpr std::size_t kExtendedEnd = 4096;
constexpr std::uint16_t kExtendedAcs = 0x000d;
constexpr std::uint16_t kExtendedAts = 0x000f;
constexpr std::size_t kAcsControl = 0x06;
constexpr std::size_t kAtsControl = 0x06;
constexpr std::uint16_t kAtsEnable = 0x8000;

std::optional<std::uint16_t> word(std::string_view bytes, std::size_t offset) {
    if (offset + 2 > bytes.size()) return std::nullopt;
    const auto low = static_cast<unsigned char>(bytes[offset]);
    const auto high = static_cast<unsigned char>(bytes[offset + 1]);
    return static_cast<std::uint16_t>(low | high << 8U);
}

void readConventional(std::string_view bytes, ConfigSpace& out) {
    const auto status = word(bytes, kStatus);
    if (!status || (*status & kStatusHasCapabilities) == 0 || bytes.size() <= kCapabilityPointer)
        return;
    std::size_t at = static_cast<unsigned char>(bytes[kCapabilityPointer]) & 0xfcU;
    // A capability takes at least four bytes, so a list longer than this runs in a circle.
    for (int left = 48; left > 0 && at >= 0x40; --left) {
        const auto header = word(bytes, at);
        if (!header) return;
        if ((*header & 0xffU) == kCapabilityPcie) {
            out.pcie = true;
            if (const auto control = word(bytes, at + kPcieDeviceControl))
                out.relaxed_ordering = (*control & kDeviceControlRelaxedOrdering) != 0;
            return;
        }
        at = *header >> 8U & 0xfcU;
    }
}

void readExtended(std::string_view bytes, ConfigSpace& out) {
    std::size_t at = kExtendedStart;
    for (int left = 480; left > 0 && at >= kExtendedStart && at + 4 <= kExtendedEnd; --left) {
        const auto id = word(bytes, at);
        const auto next = word(bytes, at + 2);
        // All zeros or all ones at the start: the function has no extended capabilities.
        if (!id || !next || *id == 0xffff || (*id == 0 && *next == 0)) return;
        if (*id == kExtendedAcs) out.acs = word(bytes, at + kAcsControl);
        if (*id == kExtendedAts)
            if (const auto control = word(bytes, at + kAtsControl))
                out.ats = (*control & kAtsEnable) != 0;
        at = *next >> 4U & 0xffcU;
    }
}

}  // namespace

std::string acsRedirectNames(std::uint16_t acs) {
    std::string out;
    const auto add = [&](std::uint16_t bit, const char* name) {
        if ((acs & bit) == 0) return;
        if (!out.empty()) out += ' ';
        out += name;
    };
    add(kAcsRequestRedirect, "ReqRedir+");
    add(kAcsCompletionRedirect, "CmpltRedir+");
    add(kAcsEgressControl, "EgressCtrl+");
    return out;
}

ConfigSpace parseConfigSpace(std::string_view bytes) {
    ConfigSpace out;
    out.visible_bytes = static_cast<int>(bytes.size() > kExtendedEnd ? kExtendedEnd : bytes.size());
    readConventional(bytes.substr(0, kConventionalEnd), out);
    if (bytes.size() > kConventionalEnd) readExtended(bytes, out);
    return out;
}

}  // namespace rdmatune
