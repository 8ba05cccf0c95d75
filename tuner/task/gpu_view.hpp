// Which of a node's GPUs one task sees, and who decided that.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/task/task.hpp"

namespace rdmatune {

using Environment = std::map<std::string, std::string>;

/// What CUDA would enumerate in this task, before anything is changed.
struct GpuView {
    enum class Origin {
        Nobody,  ///< CUDA_VISIBLE_DEVICES is not set
        Slurm,   ///< it follows from the GPUs Slurm gave the step or the task
        User     ///< the user, a script or another tool chose it
    };
    Origin origin = Origin::Nobody;
    /// GPUs the driver shows to this task, in PCI order: CUDA's numbers are positions in this.
    std::vector<int> enumerable;
    /// What CUDA_VISIBLE_DEVICES leaves of them, in its order.
    std::vector<int> visible;
    bool mig = false;         ///< some of it are MIG instances; `visible` has their GPUs
    bool isolated = false;    ///< the task cannot open all GPUs of the step (device cgroup)
    bool unreadable = false;  ///< CUDA_VISIBLE_DEVICES names what cannot be resolved
};

/// `step`: the GPUs of the step, as planned, indexes into Node::gpus in PCI order.
///
/// CUDA_VISIBLE_DEVICES is Slurm's when GPU_DEVICE_ORDINAL, which Slurm sets to the same value,
/// says so; without that variable, when the step has GPUs from Slurm and the value is an ascending
/// list of their numbers, absolute or counted from 0. Slurm counts in the order of device minors,
/// CUDA in PCI order.
[[nodiscard]] GpuView viewGpus(const Node& node, const std::vector<int>& step,
                               const TaskFacts& facts);

/// GPU_DEVICE_ORDINAL, SLURM_STEP_GPUS, CUDA_VISIBLE_DEVICES: a list of numbers, ranges allowed
/// ("0-3,6"). Nothing when it is anything else.
[[nodiscard]] std::optional<std::vector<int>> parseNumbers(std::string_view text);

/// `gpus` sorted as Slurm counts: by device minor where all minors are known.
[[nodiscard]] std::vector<int> inMinorOrder(const Node& node, std::vector<int> gpus);

[[nodiscard]] const std::string* lookUp(const Environment& env, const std::string& name);

}  // namespace rdmatune
