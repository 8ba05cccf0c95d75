// GPUs of the running machine and what their drivers tell in /proc and /sys.
#pragma once

#include "tuner/topology/node.hpp"
#include "tuner/topology/read.hpp"
#include "tuner/topology/sys_pci.hpp"

namespace rdmatune {

/// Adds every compute GPU to node.gpus, with UUID, minor, model and MIG instances as far as the
/// NVIDIA driver's files under /proc or the amdgpu driver's under /sys say them.
void readGpus(const SystemRoots& roots, const PciFunctions& functions, Node& node);

}  // namespace rdmatune
