#include "tuner/topology/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {

/// The outermost switch above a device: its upstream port, or the switch itself in NCCL's form.
std::optional<PciAddress> switchAbove(const Node& node, const std::vector<PciAddress>& path) {
    const std::size_t first = node.source == TopologySource::NcclXml ? 0 : 1;
    if (path.size() <= first) return std::nullopt;
    return path[first];
}

std::string linkText(const PcieLink& link) {
    if (link.speed_gts <= 0 || link.width <= 0) return {};
    std::string out = fmt::format("PCIe {:g} GT/s x{}", link.speed_gts, link.width);
    const bool slow = link.max_speed_gts > link.speed_gts || link.max_width > link.width;
    if (slow && link.max_speed_gts > 0 && link.max_width > 0)
        out += fmt::format(" (could run {:g} GT/s x{})", link.max_speed_gts, link.max_width);
    return out;
}

/// Parts that are not empty, two blanks between them.
std::string line(std::vector<std::string> parts) {
    std::erase_if(parts, [](const std::string& part) { return part.empty(); });
    return join(parts, "  ");
}

std::string gpuLine(const Gpu& gpu) {
    std::string minor;
    if (gpu.minor)
        minor = gpu.vendor == "nvidia" ? fmt::format("/dev/nvidia{}", *gpu.minor)
                                       : fmt::format("/dev/dri/renderD{}", 128 + *gpu.minor);
    return line({fmt::format("GPU{}", gpu.index), gpu.pci ? gpu.pci->str() : "", gpu.model,
                 gpu.uuid.value_or(""), minor, linkText(gpu.link),
                 gpu.mig.empty() ? "" : fmt::format("{} MIG instance(s)", gpu.mig.size())});
}

std::string hcaLine(const Hca& hca) {
    std::string state;
    if (hca.state != PortState::Unknown) state = toString(hca.state);
    std::string layer;
    if (hca.link_layer != LinkLayer::Unknown) layer = toString(hca.link_layer);
    std::string bond;
    if (!hca.bond_master.empty())
        bond = "in bond " + hca.bond_master;
    else if (hca.is_bond)
        bond = "bond";
    return line({hca.label(), hca.pci ? hca.pci->str() : "", layer, state,
                 hca.rate_gbps > 0 ? fmt::format("{:g} Gb/s", hca.rate_gbps) : "", hca.netdev,
                 hca.gids_known && hca.gids.empty() ? "no GID" : "", bond,
                 hca.physical_function ? "virtual function of " + hca.physical_function->str() : "",
                 hca.open_errno != 0
                     ? fmt::format("cannot be opened: {}", std::strerror(hca.open_errno))
                     : "",
                 linkText(hca.link)});
}

/// Lines of the devices of one NUMA node, those below a switch together.
std::string deviceLines(const Node& node, int numa) {
    std::map<std::optional<PciAddress>, std::vector<std::string>> groups;
    for (const Gpu& gpu : node.gpus)
        if (gpu.numa == numa) groups[switchAbove(node, gpu.pci_path)].push_back(gpuLine(gpu));
    for (const Hca& hca : node.hcas)
        if (hca.numa == numa) groups[switchAbove(node, hca.pci_path)].push_back(hcaLine(hca));
    std::string out;
    for (const auto& [address, lines] : groups) {
        if (address) out += "  switch " + address->str() + '\n';
        for (const std::string& text : lines) out += (address ? "    " : "  ") + text + '\n';
    }
    return out;
}

std::string matrixLines(const Node& node) {
    if (node.gpus.empty() || node.hcas.empty()) return {};
    std::string out = fmt::format("\n{:<7}", "");
    const auto width = [](const Hca& hca) { return std::max<std::size_t>(hca.label().size(), 4); };
    for (const Hca& hca : node.hcas) out += fmt::format("{:<{}}  ", hca.label(), width(hca));
    out = out.substr(0, out.find_last_not_of(' ') + 1) + '\n';
    for (std::size_t g = 0; g < node.gpus.size(); ++g) {
        std::string row = fmt::format("{:<7}", fmt::format("GPU{}", g));
        for (std::size_t h = 0; h < node.hcas.size(); ++h)
            row += fmt::format("{:<{}}  ", toString(node.distance[g][h]), width(node.hcas[h]));
        out += row.substr(0, row.find_last_not_of(' ') + 1) + '\n';
    }
    return out;
}

}  // namespace

std::string describe(const Node& node) {
    std::string out =
        fmt::format("{}{} GPU(s), {} HCA port(s), {} NUMA node(s), {} CPU(s)  [{}]\n",
                    node.hostname.empty() ? "" : node.hostname + ": ", node.gpus.size(),
                    node.hcas.size(), node.numa.size(), node.cpus.size(), toString(node.source));
    for (const NumaNode& numa : node.numa)
        out += fmt::format("NUMA node {}{}{}\n", numa.os_index,
                           numa.package >= 0 ? fmt::format(", package {}", numa.package) : "",
                           numa.cpus.empty() ? "" : ", CPUs " + numa.cpus.str()) +
               deviceLines(node, numa.os_index);
    const std::string elsewhere = deviceLines(node, -1);
    if (!elsewhere.empty()) out += "NUMA node not known\n" + elsewhere;
    out += matrixLines(node);
    if (!node.notes.empty()) out += '\n';
    for (const std::string& note : node.notes) out += "note: " + note + '\n';
    return out;
}

}  // namespace rdmatune
