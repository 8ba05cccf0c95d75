// Truth to compare with: a real ring and a real double-binary-tree allreduce over the measured
// links.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/base/result.hpp"
#include "tuner/fabric/transport.hpp"

namespace rdmatune::fabric {

/// The links of one agent, all connected, one per rail in each vector (so: links[rail]). They are
/// the ones of the bandwidth patterns: each carries data one way only.
struct CollectiveLinks {
    using Rails = std::vector<Link*>;
    /// One of the two trees. Empty Rails: no parent, no such child.
    struct Tree {
        Rails to_parent;                  ///< reduce, upwards
        Rails from_parent;                ///< broadcast, downwards
        std::array<Rails, 2> from_child;  ///< reduce
        std::array<Rails, 2> to_child;    ///< broadcast
    };
    int node = 0;  ///< this agent's position, 0..nodes-1
    int nodes = 0;
    Rails to_next;    ///< ring
    Rails from_prev;  ///< ring
    std::array<Tree, 2> trees;
};

/// Time of one allreduce of `bytes` per node (32-bit floats in host memory), microseconds.
struct CollectiveTime {
    std::size_t bytes = 0;
    double ring_us = 0;  ///< median of `runs`; 0: not measured
    double tree_us = 0;
    int runs = 0;
};

/// Runs both allreduces for each size, all nodes calling it with equal sizes at about the same
/// time. Checks the sums: a wrong one is an error. Ends by the deadline with what was measured by
/// then.
[[nodiscard]] Result<std::vector<CollectiveTime>> runCollectives(const CollectiveLinks& links,
                                                                 std::span<const std::size_t> sizes,
                                                                 Deadline deadline);

}  // namespace rdmatune::fabric
