#include <algorithm>
#include <set>

#include "tuner/base/text.hpp"
#include "tuner/topology/complete.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune {
namespace {

/// The saved device of a live device's PCI address, for an HCA by port too where the file tells
/// ports; null when the file has none.
const Gpu* counterpart(const Gpu& live, const Node& saved) {
    const auto it = std::ranges::find_if(
        saved.gpus, [&](const Gpu& gpu) { return gpu.pci && gpu.pci == live.pci; });
    return it == saved.gpus.end() ? nullptr : &*it;
}

const Hca* counterpart(const Hca& live, const Node& saved) {
    const Hca* any_port = nullptr;
    for (const Hca& hca : saved.hcas) {
        if (!hca.pci || hca.pci != live.pci) continue;
        if (hca.port == live.port) return &hca;
        any_port = &hca;
    }
    return any_port;
}

/// Copies a place. A NUMA node that the running machine does not have is no place on it.
template <class Device>
void move(const Device& from, const Node& live, Device& to) {
    to.pci_path = from.pci_path;
    const bool exists =
        std::ranges::find(live.numa, from.numa, &NumaNode::os_index) != live.numa.end();
    if (from.numa < 0 || !exists) return;
    to.numa = from.numa;
    to.package = from.package;
}

void copyBridges(const Node& saved, Node& live) {
    std::set<PciAddress> known;
    for (const PciBridge& bridge : live.bridges) known.insert(bridge.pci);
    for (const PciBridge& bridge : saved.bridges)
        if (!known.contains(bridge.pci)) live.bridges.push_back(bridge);
    std::ranges::sort(live.bridges, {}, &PciBridge::pci);
}

/// Addresses of the saved devices that no live device has.
template <class Device>
std::vector<std::string> absent(const std::vector<Device>& saved, const std::vector<Device>& live) {
    std::vector<std::string> out;
    for (const Device& device : saved)
        if (device.pci && std::ranges::find(live, device.pci, &Device::pci) == live.end())
            out.push_back(device.pci->str());
    return out;
}

}  // namespace

Node withSavedTopology(Node live, const Node& saved) {
    if (live.gpus.empty() && live.hcas.empty()) {
        Node out = saved;
        out.hostname = live.hostname;
        return out;
    }
    std::vector<const Gpu*> gpus;
    std::vector<const Hca*> hcas;
    std::vector<std::string> unplaced;
    for (const Gpu& gpu : live.gpus) {
        gpus.push_back(counterpart(gpu, saved));
        if (gpus.back() == nullptr) unplaced.push_back("GPU" + std::to_string(gpu.index));
    }
    for (const Hca& hca : live.hcas) {
        hcas.push_back(counterpart(hca, saved));
        if (hcas.back() == nullptr) unplaced.push_back(hca.label());
    }
    if (unplaced.size() == live.gpus.size() + live.hcas.size()) {
        live.notes.emplace_back(
            "The saved topology has none of this machine's PCI addresses and is not used.");
        return live;
    }
    for (std::size_t g = 0; g < gpus.size(); ++g)
        for (std::size_t h = 0; h < hcas.size(); ++h)
            if (gpus[g] != nullptr && hcas[h] != nullptr)
                live.distance[g][h] =
                    saved.distance[static_cast<std::size_t>(gpus[g] - saved.gpus.data())]
                                  [static_cast<std::size_t>(hcas[h] - saved.hcas.data())];
    for (std::size_t g = 0; g < gpus.size(); ++g) {
        if (gpus[g] == nullptr) continue;
        move(*gpus[g], live, live.gpus[g]);
        const CpuSet cpus = gpus[g]->cpus & live.cpus;
        if (!cpus.empty()) live.gpus[g].cpus = cpus;
    }
    for (std::size_t h = 0; h < hcas.size(); ++h)
        if (hcas[h] != nullptr) move(*hcas[h], live, live.hcas[h]);
    copyBridges(saved, live);
    if (live.flat) {
        // What noteFlat said of the machine alone no longer holds.
        live.flat = saved.flat;
        if (!live.flat) std::erase(live.notes, flatMachineNote());
    }
    if (!unplaced.empty())
        live.notes.push_back("Not in the saved topology, placed as the machine shows it: " +
                             join(unplaced, ", ") + ".");
    auto missing = absent(saved.gpus, live.gpus);
    std::ranges::copy(absent(saved.hcas, live.hcas), std::back_inserter(missing));
    if (!missing.empty())
        live.notes.push_back(
            "In the saved topology but not on this machine: " + join(missing, ", ") + ".");
    return live;
}

Result<Node> readThisMachineThrough(const std::string& file, const SystemRoots& roots) {
    Result<Node> saved = readTopologyFile(file);
    if (!saved) return saved;
    Result<Node> live = readThisMachine(roots);
    if (!live) {
        saved->notes.push_back(live.error().message + "; the saved topology is used alone.");
        return saved;
    }
    return withSavedTopology(std::move(*live), *saved);
}

}  // namespace rdmatune
