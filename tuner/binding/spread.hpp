// Spreading jobs over machines as evenly as possible, exactly.
#pragma once

#include <cstddef>
#include <vector>

namespace rdmatune {

/// Each job goes to one of the machines it lists. Finds the assignment with the evenest load: the
/// one whose loads, sorted from the highest down, come first in lexicographic order, which for
/// this problem is also the one with the least sum of squared loads. Among all such assignments it
/// returns the lexicographically first one, with machines compared by their position in
/// `preference`, so that the result does not depend on the order in which the search meets them.
///
/// `allowed[j]` lists job j's machines (never empty). `base[m]` is a load that machine m already
/// has. `preference` lists all machines, the most preferred first. Returns the machine of each job.
///
/// Method: optimal semi-matching by alternating paths (Harvey, Ladner, Lovasz, Tamir,
/// "Semi-matchings for bipartite graphs and load balancing", Journal of Algorithms 59, 2006): each
/// job in turn goes along an alternating path to the least loaded machine that can be reached.
[[nodiscard]] std::vector<int> spreadEvenly(const std::vector<std::vector<int>>& allowed,
                                            const std::vector<int>& base,
                                            const std::vector<int>& preference);

/// The evenest load alone, without the tie-break: for many jobs on few machines.
[[nodiscard]] std::vector<int> balance(const std::vector<std::vector<int>>& allowed,
                                       std::size_t machines);

}  // namespace rdmatune
