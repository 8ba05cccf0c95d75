// One rail of many that is slow somewhere: too little of a node's bandwidth to make the node or the
// link stand out, and yet what a ring over all rails waits for.
#pragma once

#include <string>
#include <vector>

#include "tuner/binding/agreement.hpp"
#include "tuner/fabric/judge.hpp"
#include "tuner/fabric/phases.hpp"
#include "tuner/fabric/wire.hpp"

namespace rdmatune::fabric {

struct SlowRail {
    int rail = 0;
    int node = 0;       ///< whose HCA it is: slow to the next node and from the previous one
    int other = -1;     ///< otherwise the node it was slow to: a cable, a port, or either HCA
    double gbs = 0;     ///< its slowest figure, GB/s
    double others = 0;  ///< what a rail has otherwise: the better quarter's, GB/s
    [[nodiscard]] bool samePlace(const SlowRail& that) const {
        return rail == that.rail && node == that.node && other == that.other;
    }
};

/// Rails that carry less than `limits.bandwidth_fraction` of what the others carry on the ring, all
/// nodes sending at once, and are further away than four robust standard deviations; the worst
/// first. Where most rails of an edge are slow the node or the link is, and findSuspects sees it.
[[nodiscard]] std::vector<SlowRail> findSlowRails(const std::vector<EdgeResult>& edges, int nodes,
                                                  const Thresholds& limits);

/// Those of `first` that were slow in another moment, too, with the better figure of both.
[[nodiscard]] std::vector<SlowRail> slowInBoth(const std::vector<SlowRail>& first,
                                               const std::vector<SlowRail>& second);

/// One sentence with the HCAs' names, the figure and the others'.
[[nodiscard]] std::string describe(const SlowRail& slow, const std::vector<Hello>& members,
                                   const Agreement& agreement);

}  // namespace rdmatune::fabric
