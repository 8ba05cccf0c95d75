#include "tuner/base/pci_address.hpp"

#include <array>
#include <charconv>
#include <cstdio>

namespace rdmatune {
namespace {

/// One hexadecimal field of at most `max_digits`, or nothing.
std::optional<std::uint32_t> hexField(std::string_view text, std::size_t max_digits) {
    if (text.empty() || text.size() > max_digits) return std::nullopt;
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

std::string PciAddress::str() const {
    std::array<char, 32> out{};
    const int n =
        std::snprintf(out.data(), out.size(), "%04x:%02x:%02x.%x", domain, bus, device, function);
    return {out.data(), static_cast<std::size_t>(n)};
}

std::optional<PciAddress> PciAddress::parse(std::string_view text) {
    const auto dot = text.rfind('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const auto function = hexField(text.substr(dot + 1), 1);
    text = text.substr(0, dot);
    const auto last = text.rfind(':');
    if (last == std::string_view::npos) return std::nullopt;
    const auto device = hexField(text.substr(last + 1), 2);
    text = text.substr(0, last);
    std::optional<std::uint32_t> domain = 0;
    if (const auto first = text.rfind(':'); first != std::string_view::npos) {
        domain = hexField(text.substr(0, first), 8);
        text = text.substr(first + 1);
    }
    const auto bus = hexField(text, 2);
    if (!domain || !bus || !device || !function || *device > 0x1f || *function > 7)
        return std::nullopt;
    return PciAddress{*domain, static_cast<std::uint8_t>(*bus), static_cast<std::uint8_t>(*device),
                      static_cast<std::uint8_t>(*function)};
}

}  // namespace rdmatune
