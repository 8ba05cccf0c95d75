// What all nodes of a job have in common, and by what they differ.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner/binding/agreement.hpp"
#include "tuner/fabric/wire.hpp"

namespace rdmatune::fabric {

/// NodeFacts::error of a node whose slurmstepd has no plugin: its ranks would have no tuner, and
/// ranks that choose differently hang.
inline constexpr const char* kNoPlugin =
    "plugstack.conf does not name the rdma-tune plugin there, so its ranks could not be tuned like "
    "the others";

struct Agreed {
    Agreement agreement;
    std::vector<std::string> notes;  ///< what differs, each one sentence that names the nodes
    std::string refusal;             ///< why no rank of this step may be tuned; empty: nothing
};

/// Compares the agents' introductions: version, GPU count, HCA count, link layer, subnets. The
/// agreement takes the link layer that every node has (the one with more rails if there are two);
/// rails by subnet where each node has exactly one HCA in each of several common subnets, otherwise
/// by position, as many as the node with the fewest has.
[[nodiscard]] Agreed agree(const std::vector<Hello>& hellos);

/// "gpu03, gpu04 and 5 more"
[[nodiscard]] std::string nameNodes(const std::vector<std::string>& hosts);

}  // namespace rdmatune::fabric
