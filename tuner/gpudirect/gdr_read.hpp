// Reads GdrFacts from the running machine, or from trees made by hand.
#pragma once

#include <string>

#include "tuner/gpudirect/gdr_facts.hpp"
#include "tuner/topology/node.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune {

/// Never fails; what cannot be read stays absent. Reads are bounded in size. With other roots than
/// the default nothing is asked of the running kernel: the process' limits come from
/// `roots.proc`/self/limits, and no HCA is opened through verbs.
[[nodiscard]] GdrFacts readGdrFacts(const Node& node, const SystemRoots& roots = {});

/// Asks the driver of the HCA `name` whether it registers DMA-BUF memory, with a file descriptor
/// that cannot be one, so that nothing is registered.
[[nodiscard]] DmabufProbe probeDmabuf(const std::string& name);

}  // namespace rdmatune
