// PCIe links that run below what both their ends can do.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tuner/gpudirect/gdr_judge.hpp"

namespace rdmatune::gdr {
namespace {

const PciBridge* bridgeAt(const Node& node, const PciAddress& address) {
    for (const PciBridge& bridge : node.bridges)
        if (bridge.pci == address) return &bridge;
    return nullptr;
}

/// The lesser of two maxima, of which 0 means not known.
template <class T>
T lesser(T a, T b) {
    if (a == T{}) return b;
    return b == T{} ? a : std::min(a, b);
}

/// Gbit/s that a link carries, less its line code (8b/10b up to 5 GT/s, then 128b/130b).
double linkGbps(const PcieLink& link) {
    return link.speed_gts * link.width * (link.speed_gts <= 5 ? 0.8 : 128.0 / 130.0);
}

/// One link: the device at its lower end, what it is called, and the port above, if known.
struct Judged {
    std::string name;
    PcieLink link;
    const PcieLink* above = nullptr;
    bool gpu = false;  ///< a GPU, or the bridge on its own board: lets its link sleep while idle
};

void judge(const Judged& at, Findings& findings) {
    const int max_width = lesser(at.link.max_width, at.above != nullptr ? at.above->max_width : 0);
    const double max_speed =
        lesser(at.link.max_speed_gts, at.above != nullptr ? at.above->max_speed_gts : 0.0);
    if (at.link.width > 0 && at.link.width < max_width)
        findings.push_back(
            {"link-narrow", Severity::Warning,
             fmt::format("{}: the PCIe link runs {} lanes wide, both ends can do {}.", at.name,
                         at.link.width, max_width),
             "Use another node for jobs that need the full bandwidth, and tell the administrator.",
             "Reseat the card or the riser, clean the contacts; check the slot's bifurcation in "
             "the "
             "BIOS."});
    else if (at.link.width > 0 && at.link.max_width > max_width && !at.gpu)
        findings.push_back({"link-slot", Severity::Info,
                            fmt::format("{}: made for {} lanes, in a slot of {}.", at.name,
                                        at.link.max_width, max_width),
                            "Nothing to do in a job.",
                            "Move the card to a wider slot if there is one."});
    if (at.link.speed_gts <= 0 || at.link.speed_gts >= max_speed) return;
    if (at.gpu)
        findings.push_back({"link-slow", Severity::Info,
                            fmt::format("{}: the PCIe link runs at {} GT/s of {}; GPUs do so while "
                                        "they are idle.",
                                        at.name, at.link.speed_gts, max_speed),
                            "Nothing to do while it is idle.",
                            "If it stays so under load (nvidia-smi -q), treat it as a fault."});
    else
        findings.push_back(
            {"link-slow", Severity::Warning,
             fmt::format("{}: the PCIe link runs at {} GT/s, both ends can do {}.", at.name,
                         at.link.speed_gts, max_speed),
             "Use another node for jobs that need the full bandwidth, and tell the administrator.",
             "Set the slot's speed to Auto in the BIOS; look for corrected PCIe errors in dmesg; "
             "reseat "
             "the card."});
}

const PcieLink* parentLink(const Node& node, const std::vector<PciAddress>& path) {
    const PciBridge* bridge = path.empty() ? nullptr : bridgeAt(node, path.back());
    return bridge == nullptr ? nullptr : &bridge->link;
}

/// Links above the switches. A path is root port, upstream port, downstream port, upstream port
/// ..., so that every port at an odd place is the lower end of a link whose upper end comes before
/// it.
void judgeSwitches(const Node& node, Findings& findings) {
    std::set<PciAddress> seen;
    const auto walk = [&](const std::vector<PciAddress>& path) {
        for (std::size_t i = 1; i < path.size(); i += 2) {
            const PciBridge* above = bridgeAt(node, path[i - 1]);
            const PciBridge* below = bridgeAt(node, path[i]);
            if (above == nullptr || below == nullptr || !seen.insert(below->pci).second) continue;
            // Both ends of one link tell the same; where they do not, it is not one link.
            if (above->link.width != below->link.width ||
                above->link.speed_gts != below->link.speed_gts)
                continue;
            // AMD's cards carry a bridge between slot and GPU; its link sleeps with the GPU.
            const bool on_card = below->vendor_device.starts_with("1002:");
            judge({fmt::format("PCIe switch {}", below->pci.str()), below->link, &above->link,
                   on_card},
                  findings);
        }
    };
    for (const Gpu& gpu : node.gpus) walk(gpu.pci_path);
    for (const Hca& hca : node.hcas) walk(hca.pci_path);
}

}  // namespace

void judgeLinks(const Node& node, Findings& findings) {
    judgeSwitches(node, findings);
    for (const Gpu& gpu : node.gpus)
        judge({gpuName(gpu), gpu.link, parentLink(node, gpu.pci_path), true}, findings);
    std::set<PciAddress> seen;
    for (const Hca& hca : node.hcas) {
        if (!usable(hca) || hca.physical_function) continue;  // a VF has no link of its own
        if (!hca.pci || !seen.insert(*hca.pci).second) continue;
        judge({hca.label(), hca.link, parentLink(node, hca.pci_path), false}, findings);
        const double link = linkGbps(hca.link);
        if (link > 0 && link < hca.rate_gbps)
            findings.push_back(
                {"link-below-port", Severity::Warning,
                 fmt::format("{}: the port runs at {} Gbit/s, its PCIe link carries {:.0f}.",
                             hca.label(), hca.rate_gbps, link),
                 "Use another node for jobs that need the full bandwidth.",
                 "Give the card a slot with more lanes or a newer PCIe generation."});
    }
}

}  // namespace rdmatune::gdr
