// The running machine.
//
// Devices come from /sys alone, cores and NUMA nodes from hwloc. /sys is what hwloc itself and
// NCCL read for the PCIe tree; hwloc adds nothing to it that is needed here, hides some of it by
// default, and cannot see ports' rates, GID types, virtual functions or bonds. One reader also
// means that a tree saved under another root is read by the very code that reads the machine.
#include <algorithm>
#include <filesystem>

#include "tuner/base/text.hpp"
#include "tuner/topology/complete.hpp"
#include "tuner/topology/cores.hpp"
#include "tuner/topology/pci_kind.hpp"
#include "tuner/topology/read.hpp"
#include "tuner/topology/sys_files.hpp"
#include "tuner/topology/sys_gpu.hpp"
#include "tuner/topology/sys_hca.hpp"
#include "tuner/topology/sys_pci.hpp"

namespace rdmatune {
namespace fs = std::filesystem;
namespace {

/// Whether the machine is a virtual one: x86 says so in the CPU's flags, others in DMI.
bool isVirtualMachine(const SystemRoots& roots) {
    const auto cpuinfo = readSmall(fs::path(roots.proc) / "cpuinfo", 65536);
    if (cpuinfo)
        for (const auto line : split(*cpuinfo, '\n'))
            if (line.starts_with("flags")) {
                const auto flags = split(line, ' ');
                return std::ranges::find(flags, "hypervisor") != flags.end();
            }
    const fs::path dmi = fs::path(roots.sys) / "class/dmi/id";
    return looksVirtual(readSmall(dmi / "sys_vendor").value_or(""),
                        readSmall(dmi / "product_name").value_or(""));
}

/// Firmware that gives a device no NUMA node (-1) may still give it CPUs; with one NUMA node
/// there is no question at all.
void locate(const std::vector<NumaNode>& numa, PciFunction& function) {
    if (function.numa >= 0) return;
    if (numa.size() == 1) function.numa = numa.front().os_index;
    if (function.local_cpus.empty()) return;
    for (const NumaNode& node : numa)
        if ((function.local_cpus - node.cpus).empty()) function.numa = node.os_index;
}

void noteOtherNics(const PciFunctions& functions, Node& node) {
    const auto count = std::ranges::count_if(functions, [](const auto& entry) {
        return isNetwork(entry.second.pci_class) && isNonVerbsFabricNic(entry.second.vendor);
    });
    if (count > 0) node.notes.push_back(slingshotNote(static_cast<int>(count)));
}

void noteUnreadableGpus(Node& node) {
    std::vector<std::string> unknown;
    for (const Gpu& gpu : node.gpus)
        if (gpu.vendor == "nvidia" && !gpu.minor) unknown.push_back(gpu.pci->str());
    if (!unknown.empty())
        node.notes.push_back(
            "No NVIDIA driver has taken " + join(unknown, ", ") +
            ", or they were not given to this container: UUID and device number are not "
            "known.");
}

}  // namespace

Result<Node> readThisMachine(const SystemRoots& roots) {
    Node node;
    node.source = TopologySource::Live;
    node.hostname = printable(readSmall(fs::path(roots.proc) / "sys/kernel/hostname").value_or(""));
    if (roots.sys == SystemRoots{}.sys)
        if (Status cores = readCoresWithHwloc(node); !cores) return cores.error();
    if (node.numa.empty()) readCoresFromSys(roots.sys, node);
    PciFunctions functions = scanPci(roots.sys);
    for (auto& [address, function] : functions) {
        locate(node.numa, function);
        if (!isPciBridge(function.pci_class)) continue;
        PciBridge bridge;
        bridge.pci = address;
        bridge.vendor_device = vendorDevice(function.vendor, function.device);
        bridge.link = readPcieLink(function.directory);
        node.bridges.push_back(std::move(bridge));
    }
    readGpus(roots, functions, node);
    readHcas(roots, functions, node);
    noteUnreadableGpus(node);
    noteOtherNics(functions, node);
    completeNode(node, PathForm::Ports, isVirtualMachine(roots));
    return node;
}

}  // namespace rdmatune
