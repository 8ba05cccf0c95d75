// Which node or link is slow: suspicion from the patterns, certainty from retests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tuner/fabric/phases.hpp"
#include "tuner/fabric/wire.hpp"

namespace rdmatune::fabric {

/// When a figure is far from the others'.
struct Thresholds {
    /// Times the others' latency. ClusterKit (NVIDIA HPC-X) uses 2.1.
    double latency_factor = 2.1;
    /// Fraction of the others' bandwidth. ClusterKit uses 0.93.
    double bandwidth_fraction = 0.93;
    /// A latency no further away than this is never suspicious: it is within what scheduling
    /// on a host adds.
    double latency_floor_us = 2;
};
/// Over TCP both ends are programs that wait for a CPU: 50 us floor, and half the bandwidth at
/// most. Agents that share a machine share its cores and memory too, in unequal parts: a quarter of
/// the bandwidth there, and a floor of 1 ms (verbs: 50 us, where a driver's threads want the
/// cores).
[[nodiscard]] Thresholds thresholdsFor(bool tcp, bool shared_machine, double latency_factor,
                                       double bandwidth_fraction);

/// An edge whose figures are far from the others'.
struct Suspect {
    int from = 0;
    int to = 0;
    double badness = 1;  ///< how many times worse than the reference
    bool operator==(const Suspect&) const = default;
};

/// Suspicious edges, the worst first. The reference is the better quarter's edge, so that it stays
/// right while up to three quarters of the edges touch slow nodes; a latency must be high in its
/// minimum as well as in its median, which mere noise does not do.
[[nodiscard]] std::vector<Suspect> findSuspects(const std::vector<EdgeResult>& edges,
                                                const Thresholds& limits);

/// Whom the ends of the worst suspicious edges (at most `most`) are tested with: each other once
/// more, and two others each that are beyond suspicion where there are such; beside them pairs
/// that show what is normal in that moment. `present[position]`: the agent still answers.
[[nodiscard]] std::vector<PairTest> planRetests(const std::vector<Suspect>& suspects,
                                                const std::vector<bool>& present,
                                                std::size_t most = 4);

/// What the retests showed.
struct Verdict {
    enum class Kind { Node, Link } kind = Kind::Node;
    int node = 0;    ///< the slow node, or one end of the slow link
    int other = -1;  ///< link: its other end
    bool by_latency = true;
    double figure = 0;  ///< us (latency) or GB/s (bandwidth): the median of its retests
    double others = 0;  ///< the same of the other pairs
    int partners = 0;   ///< different partners it was slow with
};
/// Slow nodes and links, the worst first; empty when the retests confirm nothing.
[[nodiscard]] std::vector<Verdict> judge(const std::vector<Suspect>& suspects,
                                         const std::vector<PairResult>& retests,
                                         const Thresholds& limits);

/// One sentence with the node's name, its figure and the others'.
[[nodiscard]] std::string describe(const Verdict& verdict, const std::vector<std::string>& hosts);

}  // namespace rdmatune::fabric
