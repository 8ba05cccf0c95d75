// Which process of its node this is, by the variables of whatever started it.
#pragma once

#include <optional>
#include <string>

#include "tuner/task/gpu_view.hpp"

namespace rdmatune {

/// A process among its siblings on one node.
struct LocalPlace {
    int local_rank = 0;
    int local_tasks = 1;
    std::string launcher;  ///< "torchrun", "Open MPI", "Slurm", ...; empty: started by itself
    bool operator==(const LocalPlace&) const = default;
};

/// Asks, innermost launcher first: torchrun, Open MPI, MVAPICH2, Intel MPI and MPICH's Hydra, PALS,
/// Flux, Slurm's srun. Variables of a launcher that are incomplete or make no sense are passed
/// over.
[[nodiscard]] LocalPlace localPlace(const Environment& env);

/// Entry `node` of Slurm's list "4(x2),3", which means 4, 4, 3.
[[nodiscard]] std::optional<int> tasksOnNode(std::string_view list, int node);

}  // namespace rdmatune
