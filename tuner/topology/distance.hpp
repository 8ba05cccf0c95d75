// How far two PCI functions are apart, from where they hang in the PCIe tree.
#pragma once

#include <optional>
#include <span>

#include "tuner/topology/node.hpp"

namespace rdmatune {

/// What one entry of a pci_path stands for.
enum class PathForm {
    Ports,    ///< a port: root port, then upstream and downstream port of each switch (/sys, hwloc)
    Switches  ///< a whole switch (NCCL's XML, which leaves root and downstream ports out)
};

/// Where a device hangs. Root bus and NUMA node decide where no bridge is shared.
struct PciPlace {
    std::optional<PciAddress> pci;
    std::span<const PciAddress> path;  ///< bridges from the root down
    int numa = -1;                     ///< -1: not known
    int package = -1;
};

/// NCCL's and nvidia-smi's terms (the latter's legend is the source): PIX through at most one
/// switch, PXB through several but no host bridge, PHB through one host bridge, NODE between
/// host bridges of a NUMA node or package, SYS across packages; Unknown when nothing is known that
/// would tell. In the `Switches` form there are no host bridges: NCCL gives a NUMA node one.
[[nodiscard]] Distance distanceBetween(const PciPlace& a, const PciPlace& b, PathForm form);

/// Sets node.distance for all pairs.
void fillDistances(Node& node, PathForm form);

}  // namespace rdmatune
