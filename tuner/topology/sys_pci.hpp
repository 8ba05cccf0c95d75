// The PCI functions of a machine, from the links in /sys/bus/pci/devices.
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "tuner/topology/node.hpp"

namespace rdmatune {

/// One PCI function as /sys shows it.
struct PciFunction {
    PciAddress address;
    std::filesystem::path directory;  ///< resolved, for further attributes
    unsigned vendor = 0;
    unsigned device = 0;
    unsigned pci_class = 0;        ///< class and subclass, such as 0x0302
    int numa = -1;                 ///< -1: not known
    CpuSet local_cpus;             ///< empty: not known
    std::vector<PciAddress> path;  ///< bridges from the root port down
};

using PciFunctions = std::map<PciAddress, PciFunction>;

/// Everything in `sys`/bus/pci/devices whose class can be read.
[[nodiscard]] PciFunctions scanPci(const std::filesystem::path& sys);

/// The link of a function as it runs and as it could run, 0 where /sys does not say.
[[nodiscard]] PcieLink readPcieLink(const std::filesystem::path& directory);

/// "16.0 GT/s PCIe" or "8 GT/s": 16, 8; 0 for "Unknown" and anything else.
[[nodiscard]] double parseLinkSpeed(std::string_view text);

}  // namespace rdmatune
