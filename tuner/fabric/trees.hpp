// The double binary tree that NCCL runs over the nodes of a job: which node is whose parent.
#pragma once

#include <array>

namespace rdmatune::fabric {

/// A node's place in one of the two trees; -1 where there is none.
struct TreePlace {
    int parent = -1;
    std::array<int, 2> child = {-1, -1};
    bool operator==(const TreePlace&) const = default;
};

/// Place of `node` (0..nodes-1) in tree 0 or 1 of the double binary tree over `nodes` nodes.
///
/// Shape (Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast", 2009, as NCCL
/// builds it): tree 0 is rooted at 0, and a node's lowest set bit is its height, so odd nodes are
/// leaves. Tree 1 is tree 0 mirrored when `nodes` is even, and moved on by one when it is odd, so
/// that nobody but the root of a tree carries inner work in both.
[[nodiscard]] TreePlace treePlace(int tree, int node, int nodes);

}  // namespace rdmatune::fabric
