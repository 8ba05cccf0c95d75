// How agents are started: by a nested srun, by a command for each host, or on this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/result.hpp"
#include "tuner/fabric/crew.hpp"

namespace rdmatune::fabric {

/// The step to measure for.
struct SlurmStep {
    std::string job;
    std::string step;                ///< may be empty: the whole allocation
    int nodes = 0;                   ///< 0: as many as `hosts`
    std::vector<std::string> hosts;  ///< its nodes, in Slurm's order
};

using Variables = std::vector<std::string>;  ///< NAME=VALUE

/// The value of a variable, or nothing.
[[nodiscard]] std::optional<std::string> valueOf(const Variables& variables, std::string_view name);

/// What agents inherit: what srun itself needs, paths, and RDMA_TUNE_*; none of the step's own
/// SLURM_ variables, which would be taken as options of the nested srun. The guard that keeps the
/// plugin out of the nested srun is added.
[[nodiscard]] Variables agentVariables(const Variables& own);

/// The node names of the step: SLURM_STEP_NODELIST when the caller knows it, else what
/// `scontrol show step` says (within the deadline), else the allocation's list if it has the
/// step's number of nodes.
[[nodiscard]] Result<std::vector<std::string>> stepHosts(const SlurmStep& step,
                                                         const Variables& own, Deadline deadline);

/// When the job last started, seconds since the epoch, as `scontrol show job` says; nothing when it
/// does not say. A cluster that was set up anew counts its jobs from 1 again.
[[nodiscard]] std::optional<std::int64_t> jobStart(const std::string& job, const Variables& own,
                                                   Deadline deadline);

/// One srun for one agent on each of `hosts`.
[[nodiscard]] Invocation srunCommand(const SlurmStep& step, const std::vector<std::string>& hosts,
                                     const std::string& program, double budget_s,
                                     const Variables& own);

/// `count` agents on this machine, over loopback.
[[nodiscard]] std::vector<Invocation> localCommands(int count, const std::string& program,
                                                    double budget_s, const Variables& own);

/// One command for each host from a template such as "ssh {host}": {host} is replaced, and the
/// agent's command line is added at the end, or put in the place of {agent}.
[[nodiscard]] Result<std::vector<Invocation>> templateCommands(
    const std::string& launch_template, const std::vector<std::string>& hosts,
    const std::string& program, double budget_s, const Variables& own);

/// Output of a short command, or an error: not found, failed, not finished by the deadline.
[[nodiscard]] Result<std::string> outputOf(const Invocation& command, Deadline deadline);

}  // namespace rdmatune::fabric
