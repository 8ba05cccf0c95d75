#include "tuner/topology/complete.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace rdmatune {
namespace {

const NumaNode* numaNode(const Node& node, int os_index) {
    const auto it = std::ranges::find(node.numa, os_index, &NumaNode::os_index);
    return it == node.numa.end() ? nullptr : &*it;
}

void keepUsedBridges(Node& node) {
    std::set<PciAddress> used;
    for (const Gpu& gpu : node.gpus) used.insert(gpu.pci_path.begin(), gpu.pci_path.end());
    for (const Hca& hca : node.hcas) used.insert(hca.pci_path.begin(), hca.pci_path.end());
    std::erase_if(node.bridges,
                  [&](const PciBridge& bridge) { return !used.contains(bridge.pci); });
    std::ranges::sort(node.bridges, {}, &PciBridge::pci);
}

}  // namespace

std::string flatMachineNote() {
    return "This virtual machine shows no PCIe switch between its GPUs and HCAs: which of them are "
           "near each other cannot be seen from inside. Give the provider's NCCL topology file or "
           "the host's hwloc XML to say it.";
}

void noteFlat(Node& node, bool virtual_machine) {
    const std::size_t pairs = node.gpus.size() * node.hcas.size();
    if (pairs == 0) return;
    bool near = false;
    bool all_phb = true;
    for (const auto& row : node.distance)
        for (const Distance distance : row) {
            near = near || distance <= Distance::Pxb;
            all_phb = all_phb && distance == Distance::Phb;
        }
    // One pair at PHB is an ordinary small machine; four that nothing tells apart are a pattern.
    const bool looks_flat = all_phb && node.gpus.size() > 1 && node.hcas.size() > 1;
    if (near || (!virtual_machine && !looks_flat)) return;
    node.flat = true;
    node.notes.push_back(virtual_machine
                             ? flatMachineNote()
                             : "Every GPU is as far from every HCA as from any other (PHB): there "
                               "is no topology to choose by.");
}

void linkVirtualFunctions(Node& node, const std::set<PciAddress>& virtual_functions) {
    for (Hca& hca : node.hcas) {
        if (!hca.pci || !virtual_functions.contains(*hca.pci)) continue;
        Hca* owner = nullptr;
        for (Hca& other : node.hcas) {
            if (!other.pci || virtual_functions.contains(*other.pci) || !(*other.pci < *hca.pci))
                continue;
            // Many virtual functions run over into the next bus number.
            const bool same_card = other.pci->domain == hca.pci->domain &&
                                   hca.pci->bus - other.pci->bus <= 1 &&
                                   other.pci_path == hca.pci_path;
            const bool other_asic = !hca.sys_image_guid.empty() && !other.sys_image_guid.empty() &&
                                    hca.sys_image_guid != other.sys_image_guid;
            if (same_card && !other_asic && (owner == nullptr || *owner->pci < *other.pci))
                owner = &other;
        }
        if (owner == nullptr) continue;
        hca.physical_function = owner->pci;
        owner->has_vfs = true;
    }
}

void completeNode(Node& node, PathForm form, bool virtual_machine) {
    std::ranges::sort(node.numa, {}, &NumaNode::os_index);
    std::ranges::stable_sort(node.gpus, {}, &Gpu::pci);
    std::ranges::stable_sort(node.hcas, {}, [](const Hca& hca) {
        // Without a PCI address (software RDMA) last, not first.
        return std::tuple(!hca.pci.has_value(), hca.pci, hca.port, hca.name);
    });
    int index = 0;
    for (Gpu& gpu : node.gpus) {
        gpu.index = index++;
        if (const NumaNode* numa = numaNode(node, gpu.numa)) {
            if (gpu.cpus.empty()) gpu.cpus = numa->cpus;
            if (gpu.package < 0) gpu.package = numa->package;
        }
    }
    for (Hca& hca : node.hcas)
        if (const NumaNode* numa = numaNode(node, hca.numa); numa && hca.package < 0)
            hca.package = numa->package;
    if (node.cpus.empty())
        for (const NumaNode& numa : node.numa) node.cpus = node.cpus | numa.cpus;
    keepUsedBridges(node);
    fillDistances(node, form);
    noteFlat(node, virtual_machine);
}

}  // namespace rdmatune
