// The one door to Slurm: spank_* calls as values, messages to the user and to the logs. The only
// header of the plugin that includes Slurm's.
#pragma once

extern "C" {
#include <slurm/spank.h>
}

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spank/text.hpp"
#include "tuner/base/child.hpp"

namespace rdmatune::spank {

/// A hook's handle.
class Handle {
  public:
    explicit Handle(spank_t handle) : handle_(handle) {}

    [[nodiscard]] std::optional<std::uint32_t> number(spank_item_t item) const;
    [[nodiscard]] std::optional<int> localTask() const;
    /// The environment of the step (in slurmstepd) or of the task (in task_init).
    [[nodiscard]] Environment environment() const;
    /// Who the step belongs to, supplementary groups included; nothing when Slurm does not say.
    [[nodiscard]] std::optional<ChildUser> user() const;
    [[nodiscard]] bool set(const std::string& name, const std::string& value) const;
    [[nodiscard]] bool unset(const std::string& name) const;
    [[nodiscard]] spank_t get() const { return handle_; }

  private:
    spank_t handle_;
};

/// Batch scripts, salloc's interactive steps, extern and pending steps: never touched, because a
/// failure or a delay there drains the node or holds up the whole job.
[[nodiscard]] bool isSpecialStep(std::uint32_t step_id);

/// What slurmctld knows of a running step.
struct StepFacts {
    std::string nodes;  ///< "gpu[01-04]"
    bool has_gpus = false;
};
/// One RPC from inside srun (about a millisecond); nothing when Slurm does not answer.
[[nodiscard]] std::optional<StepFacts> askStep(std::uint32_t job, std::uint32_t step);

/// Whether srun runs with -Q.
[[nodiscard]] bool isQuiet();

/// A line for the user: "rdma-tune: TEXT".
void tell(const std::string& text);
/// The same as an error.
void tellError(const std::string& text);
/// Only in logs, at -v or debug level.
void note(const std::string& text);

}  // namespace rdmatune::spank
