// Who measures with whom, and in which round: the same answer on every node, from its number alone.
#pragma once

#include <cstdint>
#include <vector>

namespace rdmatune::fabric {

enum class Pattern : std::uint8_t { Ring, Tree0, Tree1 };
inline constexpr Pattern kPatterns[] = {Pattern::Ring, Pattern::Tree0, Pattern::Tree1};

/// One edge of a pattern: a node to its ring neighbour, or a node to its parent. `from` initiates.
/// In one round of a pattern no node has two edges, so all edges of a round are measured at once.
struct Edge {
    Pattern pattern = Pattern::Ring;
    int from = 0;
    int to = 0;
    int round = 0;
    bool operator==(const Edge&) const = default;
};

/// How many rounds a pattern needs: at most 3, whatever the number of nodes.
[[nodiscard]] int roundsOf(Pattern pattern, int nodes);

/// The edges of one node, in the order of patterns and rounds. Any order of waiting for one edge
/// after the other along this list is free of deadlock, since both ends have it in common.
[[nodiscard]] std::vector<Edge> edgesOfNode(int node, int nodes);

/// All edges, in the order of patterns, then of `from`.
[[nodiscard]] std::vector<Edge> allEdges(int nodes);

}  // namespace rdmatune::fabric
