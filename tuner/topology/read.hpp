// Where Nodes come from: the running machine, or a file saved anywhere else.
#pragma once

#include <string>
#include <string_view>

#include "tuner/base/result.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

/// Roots of the trees that are read, for tests and containers.
struct SystemRoots {
    std::string sys = "/sys";
    std::string proc = "/proc";
    std::string dev = "/dev";
};

/// The running machine, through hwloc and /sys. Fails only when hwloc cannot load at all; a
/// machine without GPUs or HCAs is a Node with none. With other roots than the default, the PCI
/// tree, NUMA nodes and CPUs are read from `roots.sys` instead of the running kernel.
[[nodiscard]] Result<Node> readThisMachine(const SystemRoots& roots = {});

/// A saved topology, its format found by looking: hwloc XML (v1, v2), NCCL topology XML, an
/// `nvidia-smi topo -m` matrix, or a Node's own JSON. Errors name the file and, where there is
/// one, the line.
[[nodiscard]] Result<Node> readTopologyFile(const std::string& path);

/// The same from text in memory; `name` is used in messages.
[[nodiscard]] Result<Node> readTopologyText(std::string_view text, const std::string& name);

/// The running machine seen through a saved topology: a provider's NCCL file for a flat virtual
/// machine, or the site's hwloc XML. The devices stay those of `live`, with their names, ports and
/// states; where they hang and how far they are apart comes from `saved`, by PCI address. What only
/// one of the two has is noted. A machine on which nothing at all was found is `saved` as it is.
[[nodiscard]] Node withSavedTopology(Node live, const Node& saved);

/// The running machine seen through the saved topology in `file`: what a site's `topology` setting
/// asks for. Fails when the file cannot be read; a machine that cannot be read is the file alone.
[[nodiscard]] Result<Node> readThisMachineThrough(const std::string& file,
                                                  const SystemRoots& roots = {});

/// A Node's one text form, JSON, and back. fromJson(toJson(n)) == n.
[[nodiscard]] std::string nodeToJson(const Node& node, int indent = -1);
[[nodiscard]] Result<Node> nodeFromJson(std::string_view json, const std::string& name);

}  // namespace rdmatune
