// Which rank gets which cores.
#pragma once

#include <vector>

#include "tuner/base/cpu_set.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

/// The CPUs of one rank.
struct CoreShare {
    enum class From {
        Near,       ///< near its GPUs
        Elsewhere,  ///< none near its GPUs is allowed: from those near nobody's, or from all
        Anywhere    ///< it has no GPU, or nothing is known of the GPU's place: an equal part
    };
    CpuSet cpus;  ///< never empty while a CPU is allowed
    From from = From::Near;
    bool shared = false;  ///< there are fewer CPUs than ranks, so another rank has them too
};

/// Splits `allowed` between ranks. `gpus_of_rank` are indexes into Node::gpus. Each rank gets CPUs
/// near its GPUs, ranks near the same CPUs get equal numbers in adjacent blocks, no CPU is given
/// twice while there are enough, and both hyperthreads of a core stay together while there are
/// enough cores. Ranks for which there are too few use what is near them in common.
[[nodiscard]] std::vector<CoreShare> splitCores(const Node& node,
                                                const std::vector<std::vector<int>>& gpus_of_rank,
                                                const CpuSet& allowed);

/// The CPUs near a GPU: its own list, else its NUMA node's; empty: not known.
[[nodiscard]] CpuSet cpusNear(const Node& node, int gpu);

/// The node's cores as sets of hyperthreads. hwloc's order is not kept in a Node, so siblings are
/// told from Linux's numbering: where every NUMA node has two equally long runs of CPUs, all the
/// same distance apart ("0-23,48-71"), CPU n and the one at that distance are one core. Otherwise
/// each CPU is a core by itself.
[[nodiscard]] std::vector<CpuSet> coresOf(const Node& node);

}  // namespace rdmatune
