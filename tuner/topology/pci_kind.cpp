#include "tuner/topology/pci_kind.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {

// PCI vendor numbers, from the PCI-SIG's public list.
constexpr std::uint32_t kNvidia = 0x10de;
constexpr std::uint32_t kAmd = 0x1002;
constexpr std::uint32_t kIntel = 0x8086;
constexpr std::uint32_t kCray = 0x17db;

}  // namespace

std::string gpuVendor(std::uint32_t vendor) {
    switch (vendor) {
        case kNvidia:
            return "nvidia";
        case kAmd:
            return "amd";
        case kIntel:
            return "intel";
        default:
            return {};
    }
}

bool isComputeGpu(std::uint32_t vendor, std::uint32_t pci_class) {
    switch (vendor) {
        case kNvidia:
            return pci_class == 0x0300 || pci_class == 0x0302;
        case kAmd:
        case kIntel:
            return pci_class == 0x0302 || pci_class == 0x0380 || pci_class == 0x1200;
        default:
            return false;
    }
}

bool isPciBridge(std::uint32_t pci_class) {
    return pci_class == 0x0604;
}

bool isNetwork(std::uint32_t pci_class) {
    return pci_class >> 8 == 0x02;
}

bool isNonVerbsFabricNic(std::uint32_t vendor) {
    return vendor == kCray;
}

bool isVirtualFunction(std::uint32_t vendor, std::uint32_t device) {
    constexpr std::uint32_t kMellanox = 0x15b3;
    constexpr std::uint32_t kBroadcom = 0x14e4;
    constexpr std::array<std::uint32_t, 10> kMellanoxVfs = {0x1002, 0x1004, 0x1012, 0x1014, 0x1016,
                                                            0x1018, 0x101a, 0x101c, 0x101e, 0xa2d3};
    constexpr std::array<std::uint32_t, 10> kBroadcomVfs = {0x1606, 0x1609, 0x16c1, 0x16d3, 0x16dc,
                                                            0x16e5, 0x1806, 0x1807, 0x1808, 0x1809};
    constexpr std::array<std::uint32_t, 2> kIntelVfs = {0x0dd5, 0x1889};
    const auto in = [device](const auto& list) {
        return std::ranges::find(list, device) != list.end();
    };
    return (vendor == kMellanox && in(kMellanoxVfs)) || (vendor == kBroadcom && in(kBroadcomVfs)) ||
           (vendor == kIntel && in(kIntelVfs));
}

std::string slingshotNote(int count) {
    return std::to_string(count) +
           " Slingshot NIC(s) have no verbs interface (libfabric's cxi provider drives them) and "
           "are "
           "not counted as HCAs.";
}

std::string vendorDevice(std::uint32_t vendor, std::uint32_t device) {
    std::array<char, 16> out{};
    const int n =
        std::snprintf(out.data(), out.size(), "%04x:%04x", vendor & 0xffffU, device & 0xffffU);
    return {out.data(), static_cast<std::size_t>(n)};
}

bool looksVirtual(std::string_view vendor, std::string_view product) {
    const std::string v = lower(vendor);
    const std::string p = lower(product);
    const auto has = [](const std::string& text, std::string_view part) {
        return text.find(part) != std::string::npos;
    };
    if (has(p, "metal")) return false;
    return has(v, "qemu") || has(v, "xen") || has(v, "vmware") || has(v, "amazon ec2") ||
           has(p, "virtual machine") || has(p, "kvm") || has(p, "openstack") ||
           has(p, "google compute engine") || has(p, "vmware");
}

std::string printable(std::string_view text) {
    constexpr std::size_t kLongest = 255;
    std::string out(trim(text).substr(0, kLongest));
    for (char& c : out)
        if (c < 0x20 || c > 0x7e) c = '?';
    return out;
}

}  // namespace rdmatune
