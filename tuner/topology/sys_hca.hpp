// RDMA devices of the running machine, port by port, from /sys/class/infiniband.
#pragma once

#include "tuner/topology/node.hpp"
#include "tuner/topology/read.hpp"
#include "tuner/topology/sys_pci.hpp"

namespace rdmatune {

/// Adds one Hca per device and port to node.hcas. A device without a PCI function of its own
/// (software RDMA) takes the place of the network card it runs on, if that is one.
void readHcas(const SystemRoots& roots, const PciFunctions& functions, Node& node);

}  // namespace rdmatune
