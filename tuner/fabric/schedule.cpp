#include "tuner/fabric/schedule.hpp"

#include <algorithm>

#include "tuner/fabric/trees.hpp"

namespace rdmatune::fabric {
namespace {

int treeOf(Pattern pattern) {
    return pattern == Pattern::Tree1 ? 1 : 0;
}

int ringRound(int from, int nodes) {
    // An odd ring cannot alternate all the way round: its closing edge has a round of its own.
    return nodes % 2 == 1 && from == nodes - 1 ? 2 : from % 2;
}

/// Round of the edge from `node` to its parent: a parent's two children take the two rounds that
/// its own edge upwards leaves free.
int treeRound(int tree, int node, int nodes) {
    const int parent = treePlace(tree, node, nodes).parent;
    const TreePlace above = treePlace(tree, parent, nodes);
    const int taken = above.parent < 0 ? 2 : treeRound(tree, parent, nodes);
    const int choice = above.child[0] == node ? 0 : 1;
    return (taken + 1 + choice) % 3;
}

bool edgeFrom(Pattern pattern, int node, int nodes, Edge& edge) {
    if (pattern == Pattern::Ring) {
        edge = {pattern, node, (node + 1) % nodes, ringRound(node, nodes)};
        return true;
    }
    const int tree = treeOf(pattern);
    const int parent = treePlace(tree, node, nodes).parent;
    if (parent < 0) return false;
    edge = {pattern, node, parent, treeRound(tree, node, nodes)};
    return true;
}

}  // namespace

int roundsOf(Pattern pattern, int nodes) {
    if (nodes < 2) return 0;
    if (pattern == Pattern::Ring) return nodes % 2 == 1 ? 3 : 2;
    return std::min(nodes - 1, 3);
}

std::vector<Edge> edgesOfNode(int node, int nodes) {
    std::vector<Edge> edges;
    if (nodes < 2) return edges;
    Edge edge;
    for (const Pattern pattern : kPatterns) {
        if (edgeFrom(pattern, node, nodes, edge)) edges.push_back(edge);
        if (pattern == Pattern::Ring) {
            edgeFrom(pattern, (node + nodes - 1) % nodes, nodes, edge);
            edges.push_back(edge);
            continue;
        }
        for (const int child : treePlace(treeOf(pattern), node, nodes).child)
            if (child >= 0 && edgeFrom(pattern, child, nodes, edge)) edges.push_back(edge);
    }
    std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
        return a.pattern != b.pattern ? a.pattern < b.pattern : a.round < b.round;
    });
    return edges;
}

std::vector<Edge> allEdges(int nodes) {
    std::vector<Edge> edges;
    if (nodes < 2) return edges;
    Edge edge;
    for (const Pattern pattern : kPatterns)
        for (int node = 0; node < nodes; ++node)
            if (edgeFrom(pattern, node, nodes, edge)) edges.push_back(edge);
    return edges;
}

}  // namespace rdmatune::fabric
