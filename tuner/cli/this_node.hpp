// The two halves of binding a task, shared by node, task and exec: what holds for the whole node,
// and what is true of one task.
#pragma once

#include <string>
#include <vector>

#include "tuner/base/result.hpp"
#include "tuner/cli/site.hpp"
#include "tuner/task/launcher.hpp"
#include "tuner/task/report.hpp"
#include "tuner/task/task.hpp"

namespace rdmatune::cli {

/// Reads this node and plans it for `place.local_tasks` tasks. `env`: of the step or the process.
/// `one_of_slurms_tasks`: the caller is inside one task, whose device cgroup may hide its
/// neighbours' GPUs; it then plans for all GPUs of the node rather than for too few.
[[nodiscard]] Result<NodeReport> planThisNode(const Options& options, const Environment& env,
                                              int local_tasks, const SystemRoots& roots,
                                              bool one_of_slurms_tasks);

/// What is wrong with this node. Of a saved topology that is not of this machine only what it
/// tells.
[[nodiscard]] Diagnosis diagnoseHere(const Node& node, const SystemRoots& roots);

/// Looks at the running process as if it were the task (or is its child). The profile comes from
/// RDMA_TUNE_PROFILE or, in a step, from SLURM_RDMA_TUNE_PROFILE; a damaged one is left out, and
/// `untuned_reason` says so.
[[nodiscard]] TaskFacts lookAtTask(const Node& node, const Environment& env,
                                   const LocalPlace& place, const std::string& tuner,
                                   const SystemRoots& roots);

/// prepareTask() with the plan that fits what the task really sees.
[[nodiscard]] Result<TaskOutcome> outcomeFor(const NodeReport& report, const TaskFacts& facts);

/// What `verbose` lists: every setting with its reason, and the CPUs. One line each.
[[nodiscard]] std::vector<std::string> explainOutcome(const TaskOutcome& outcome);

/// Control characters, which could forge lines of their own, become blanks.
[[nodiscard]] std::string oneLine(std::string text);

}  // namespace rdmatune::cli
