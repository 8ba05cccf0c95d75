#include "tuner/topology/distance.hpp"

#include <algorithm>

namespace rdmatune {
namespace {

/// Switches on the way between two devices that share the first `common` bridges (at least one).
std::size_t switchesBetween(const PciPlace& a, const PciPlace& b, std::size_t common,
                            PathForm form) {
    const std::size_t below_a = a.path.size() - common;
    const std::size_t below_b = b.path.size() - common;
    if (form == PathForm::Switches) return 1 + below_a + below_b;
    // Ports alternate on the way down: root port, upstream, downstream, upstream, ... The lowest
    // shared port is either an upstream port, whose switch both ways pass and whose downstream
    // port comes next on each, or a root or downstream port, below which each switch is two ports.
    const bool at_upstream = common % 2 == 0;
    if (at_upstream) return 1 + below_a / 2 + below_b / 2;
    return (below_a + 1) / 2 + (below_b + 1) / 2;
}

/// Domain and bus of the host bridge's own bus.
std::optional<std::pair<std::uint32_t, std::uint8_t>> rootBus(const PciPlace& place) {
    if (!place.path.empty()) return std::pair{place.path[0].domain, place.path[0].bus};
    if (place.pci) return std::pair{place.pci->domain, place.pci->bus};
    return std::nullopt;
}

PciPlace placeOf(const Gpu& gpu) {
    return {gpu.pci, gpu.pci_path, gpu.numa, gpu.package};
}
PciPlace placeOf(const Hca& hca) {
    return {hca.pci, hca.pci_path, hca.numa, hca.package};
}

}  // namespace

Distance distanceBetween(const PciPlace& a, const PciPlace& b, PathForm form) {
    // A device without a PCI address may still be known to hang on a NUMA node's CPUs.
    if ((!a.pci && a.numa < 0) || (!b.pci && b.numa < 0)) return Distance::Unknown;
    const auto [end_a, end_b] = std::ranges::mismatch(a.path, b.path);
    const auto common = static_cast<std::size_t>(end_a - a.path.begin());
    if (common > 0) return switchesBetween(a, b, common, form) <= 1 ? Distance::Pix : Distance::Pxb;
    if (form == PathForm::Ports && rootBus(a) == rootBus(b)) return Distance::Phb;
    const bool numa_known = a.numa >= 0 && b.numa >= 0;
    if (numa_known && a.numa == b.numa)
        return form == PathForm::Switches ? Distance::Phb : Distance::Node;
    const bool package_known = a.package >= 0 && b.package >= 0;
    if (package_known) return a.package == b.package ? Distance::Node : Distance::Sys;
    return numa_known ? Distance::Sys : Distance::Unknown;
}

void fillDistances(Node& node, PathForm form) {
    node.distance.assign(node.gpus.size(),
                         std::vector<Distance>(node.hcas.size(), Distance::Unknown));
    for (std::size_t g = 0; g < node.gpus.size(); ++g)
        for (std::size_t h = 0; h < node.hcas.size(); ++h)
            node.distance[g][h] =
                distanceBetween(placeOf(node.gpus[g]), placeOf(node.hcas[h]), form);
}

}  // namespace rdmatune
