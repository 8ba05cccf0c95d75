// What the hooks share, and the hooks by context: srun, slurmstepd, a task, slurmd.
#pragma once

#include <string>

#include "spank/settings.hpp"
#include "spank/slurm.hpp"
#include "spank/text.hpp"

namespace rdmatune::spank {

/// Names in srun's environment; those beginning with SLURM_ reach the tasks whatever --export says.
inline constexpr const char* kProfileVariable = "SLURM_RDMA_TUNE_PROFILE";
inline constexpr const char* kAgreedVariable = "SLURM_RDMA_TUNE_AGREED";
inline constexpr const char* kUntunedVariable = "SLURM_RDMA_TUNE_UNTUNED";
inline constexpr const char* kStepVariable = "SLURM_RDMA_TUNE_STEP";
/// In a task: what we set there. In srun's environment: names of such settings of an outer step.
inline constexpr const char* kSetVariable = "RDMA_TUNE_SET";
inline constexpr const char* kInheritedVariable = "SLURM_RDMA_TUNE_INHERITED";
/// Set for the program that measures, so that the srun it starts leaves its own step alone.
inline constexpr const char* kNestedVariable = "SLURM_RDMA_TUNE_NESTED";

/// Set for it, too: its agents expect kPluginVariable, which the plugin sets on each node. Where a
/// node has no plugin, Slurm ignores the option without a word, and the agent can say it.
inline constexpr const char* kExpectVariable = "RDMA_TUNE_EXPECT_PLUGIN";
inline constexpr const char* kPluginVariable = "RDMA_TUNE_PLUGIN";

/// How far a step has come in this process. slurmstepd forks the tasks from it.
struct State {
    Sources sources;
    int components = 0;   ///< of a heterogeneous step: calls of init_post_opt
    bool active = false;  ///< slurmstepd: this step's tasks are to be prepared
    StepNote note;
    Options options;
    bool nested = false;  ///< slurmstepd: the tasks are agents
    std::string report;   ///< what `rdma-tune node` printed; these bytes are never parsed here
    std::string failure;  ///< why there is no report
    int* said = nullptr;  ///< shared with the tasks: nonzero once a failure has been told
};
[[nodiscard]] State& state();

/// The flag's callback: idempotent, because Slurm calls it once for the value inherited from sbatch
/// and again for srun's own.
int onOption(int value, const char* argument, int remote);

int srunLocalUserInit(Handle handle);
int stepdUserInit(Handle handle);
int taskInit(Handle handle);
void slurmdInit();

/// The first line of a child's standard error without our own prefix, or how it ended.
[[nodiscard]] std::string reasonOf(const ChildOutcome& outcome, const std::string& what);
[[nodiscard]] std::string hostName();
/// "WHAT took 0.12 s"
[[nodiscard]] std::string tookText(const std::string& what, double seconds);

}  // namespace rdmatune::spank
