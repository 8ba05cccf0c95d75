// Which GPU gets which HCAs.
#pragma once

#include <vector>

#include "tuner/topology/node.hpp"

namespace rdmatune {

/// HCAs of each anchor (a GPU, or a rank where there are none). All HCAs of one anchor are equally
/// near to it; the first is the one it must share least.
struct Pairing {
    std::vector<std::vector<int>> hcas;  ///< [anchor], positions in `usable`'s numbering
    std::vector<int> idle;               ///< farther from every anchor than that anchor's own HCA
};

/// Pairs anchors with HCAs. `distance[anchor][hca]`; `usable` lists the HCAs that may be used, in
/// the order of the rails. Exact, in this order of importance:
/// 1. least total distance: every anchor's HCAs are its nearest ones;
/// 2. evenest spread: the loads of the HCAs (anchors that have it as their first), sorted from the
///    highest down, are lexicographically least;
/// 3. PCI order: the vector of first HCAs is lexicographically least in the order of `usable`.
/// An HCA that is then nobody's first but is as near to some anchor as that anchor's first is
/// added to one such anchor, the nearest, then evenly, then in order; so no HCA that is as near as
/// one used twice stays idle.
[[nodiscard]] Pairing pairUp(const std::vector<std::vector<Distance>>& distance,
                             const std::vector<int>& usable);

/// Reduces `usable` to `count` HCAs: again and again the one whose loss costs the anchors the least
/// total distance goes, the last in order among equals.
[[nodiscard]] std::vector<int> keepNearest(const std::vector<std::vector<Distance>>& distance,
                                           std::vector<int> usable, std::size_t count);

}  // namespace rdmatune
