// NUMA nodes, packages and CPUs of the running machine.
#pragma once

#include <filesystem>

#include "tuner/base/result.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

/// Fills node.numa and node.cpus through hwloc. Fails when hwloc cannot load. When hwloc was told
/// by its own variables (HWLOC_XMLFILE) to show another machine, that is not used: nothing is
/// filled, and a note says so.
[[nodiscard]] Status readCoresWithHwloc(Node& node);

/// The same from `sys`/devices/system, for other roots than the running machine's.
void readCoresFromSys(const std::filesystem::path& sys, Node& node);

}  // namespace rdmatune
