// Which of the GPUs a task sees are its own, and the CUDA_VISIBLE_DEVICES that says so.
#pragma once

#include <string>
#include <vector>

#include "tuner/task/gpu_view.hpp"

namespace rdmatune {

/// The decision about one task's GPUs.
struct OwnGpus {
    std::vector<int> gpus;  ///< its own, indexes into Node::gpus
    int slot = 0;           ///< the rank of the Plan whose cores and HCAs it takes
    /// What becomes of CUDA_VISIBLE_DEVICES (name filled in).
    Setting visible_devices;
    std::vector<std::string> warnings;
};

/// Visibility follows Slurm. In order:
/// 1. MIG instances, a user's own list and GPUs that are not NVIDIA's are left as they are.
/// 2. A task that sees all GPUs of the step keeps them all, ordered alike in every rank: first each
///    rank's first GPU by local rank, then the others, so that device LOCALID is the rank's own.
/// 3. A task that Slurm gave no more than its share keeps just that.
/// 4. A task that Slurm gave more than its share, but not all (--gpu-bind=closest), is shown its
///    own alone: the planned GPU when it is among them, else one chosen by local rank.
[[nodiscard]] OwnGpus chooseGpus(const Node& node, const Plan& plan, const GpuView& view,
                                 const TaskFacts& facts);

}  // namespace rdmatune
