// A Node for people.
#pragma once

#include <string>

#include "tuner/topology/node.hpp"

namespace rdmatune {

/// One screen: NUMA nodes with their switches, GPUs and HCAs, the distance matrix, the notes. Ends
/// with a line end.
[[nodiscard]] std::string describe(const Node& node);

}  // namespace rdmatune
