// From the edges' figures to a profile.
#pragma once

#include <string>
#include <vector>

#include "tuner/fabric/wire.hpp"
#include "tuner/profile/profile.hpp"

namespace rdmatune::fabric {

/// Figures of ring and tree out of the edges of `nodes` measured nodes: alpha is the median and the
/// worst edge's median latency; the ring's beta the median and the worst edge's bandwidth; the
/// tree's beta what a node sends in all over its tree edges, median and worst node. Also the
/// bandwidth of one rail alone.
void addFigures(const std::vector<EdgeResult>& edges, int nodes, FabricProfile& profile);

/// One rail somewhere has only this share of what the others have: NCCL gives every rail an equal
/// part, so a ring or tree over all of them goes at the slow one's pace. Goes into the worst beta.
void addSlowRail(double share, FabricProfile& profile);

/// How many of the figures that `nodes` nodes owe are there, between 0 and 1; and whether enough
/// is there for a profile: alpha and beta of at least half of the ring's edges.
struct Coverage {
    double share = 0;
    bool usable = false;
    int ring_latency = 0;
    int ring_bandwidth = 0;
    int edges_missing = 0;  ///< edges without one of their figures
};
[[nodiscard]] Coverage coverageOf(const std::vector<EdgeResult>& edges, int nodes);

}  // namespace rdmatune::fabric
