// The GPUs of a whole step on one node, and the plan that fits what a task really sees.
#pragma once

#include <optional>
#include <vector>

#include "tuner/base/result.hpp"
#include "tuner/binding/plan.hpp"
#include "tuner/task/gpu_view.hpp"

namespace rdmatune {

/// The step's GPUs as indexes into Node::gpus, in PCI order. `openable`: GPUs whose device file the
/// asking process can open, where that is known; that is the truth, SLURM_STEP_GPUS (in a batch
/// script SLURM_JOB_GPUS) only narrows it down where devices are not constrained. Slurm's numbers
/// are device minors; where no minor is known they are taken as indexes.
[[nodiscard]] std::vector<int> stepGpus(const Node& node, const Environment& env,
                                        const std::optional<std::vector<int>>& openable);

/// The plan for what a task really sees. `plan` itself (made from `request`) while the visible GPUs
/// are among its own; a user's own shorter list that has a GPU for every task is planned for as
/// given. GPUs that `plan` does not know mean that the step's set was guessed wrong: planned anew
/// for what is visible, or, when that is less than one GPU for each task and so the neighbours see
/// others, for all GPUs of the node, because NCCL_IB_HCA must be the same in all ranks of a node.
[[nodiscard]] Result<Plan> fitPlan(const Node& node, const PlanRequest& request, const Plan& plan,
                                   const TaskFacts& facts);

}  // namespace rdmatune
