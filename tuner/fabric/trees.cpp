#include "tuner/fabric/trees.hpp"

namespace rdmatune::fabric {
namespace {

TreePlace firstTree(int node, int nodes) {
    TreePlace place;
    if (node == 0) {
        int top = 1;
        while (top * 2 < nodes) top *= 2;
        if (nodes > 1) place.child[0] = top;
        return place;
    }
    const int height = node & -node;
    const int base = node - height;
    // The parent has the next higher height; where the tree's right edge is cut off there, the
    // subtree hangs directly below the last node that exists.
    const int above = base | (height << 1);
    place.parent = above < nodes ? above : base;
    int reach = height >> 1;
    if (reach == 0) return place;
    place.child[0] = node - reach;
    while (reach > 0 && node + reach >= nodes) reach >>= 1;
    if (reach > 0) place.child[1] = node + reach;
    return place;
}

}  // namespace

TreePlace treePlace(int tree, int node, int nodes) {
    if (tree == 0) return firstTree(node, nodes);
    const bool mirrored = nodes % 2 == 0;
    const auto image = [&](int other) {
        if (other < 0) return other;
        return mirrored ? nodes - 1 - other : (other + 1) % nodes;
    };
    const int origin = mirrored ? nodes - 1 - node : (node + nodes - 1) % nodes;
    TreePlace place = firstTree(origin, nodes);
    place.parent = image(place.parent);
    for (int& child : place.child) child = image(child);
    return place;
}

}  // namespace rdmatune::fabric
