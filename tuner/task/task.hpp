// What one task is given: environment and CPU affinity, from the node's Plan and what this task
// really sees. Pure: the caller looks (facts) and the caller acts (settings).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/base/cpu_set.hpp"
#include "tuner/binding/plan.hpp"
#include "tuner/gpudirect/finding.hpp"

namespace rdmatune {

/// What is true of one task just before its program starts.
struct TaskFacts {
    int local_rank = 0;
    int local_tasks = 1;
    bool first_node = true;  ///< of the step: a job of 1,000 nodes says there what holds for all
    /// GPUs whose device file this task can open, as indexes into Node::gpus; absent: not known
    /// (no minors known), then CUDA_VISIBLE_DEVICES as inherited decides.
    std::optional<std::vector<int>> openable_gpus;
    std::map<std::string, std::string> env;  ///< the task's environment
    std::map<std::string, std::string>
        nccl_conf;                  ///< NCCL_CONF_FILE, ~/.nccl.conf, /etc/nccl.conf, merged
    std::string nccl_conf_origin;   ///< the file(s), for messages
    CpuSet affinity;                ///< as it is now
    CpuSet permitted;               ///< what the cpuset allows at most
    bool cpu_bind_by_user = false;  ///< --cpu-bind or SLURM_CPU_BIND given by the user
    std::string tuner_path;         ///< absolute path of the tuner plugin, empty: none
    bool tuner_readable = false;    ///< the path exists from inside the task
    std::string profile;            ///< the FabricProfile's text, empty: none
    std::string untuned_reason;     ///< why there is no profile, for `verbose`
    /// Memory that this task may lock, bytes; absent: unlimited or not known.
    std::optional<std::uint64_t> memlock;
    std::string net_plugin;  ///< a libnccl-net.so that LD_LIBRARY_PATH finds, empty: none
};

/// One variable and what became of it.
struct Setting {
    enum class Action { Set, Keep, Unset };
    std::string name;
    std::string value;
    Action action = Action::Set;
    std::string reason;  ///< why it was set, or by whom it had been set already
    bool operator==(const Setting&) const = default;
};

struct TaskOutcome {
    std::vector<Setting> settings;
    CpuSet cpus;  ///< empty: leave the affinity alone
    std::string cpus_reason;
    std::vector<std::string> warnings;  ///< one line each, for the user
};

/// Decides. Never fails: what cannot be decided is left as it was, with a warning.
[[nodiscard]] TaskOutcome prepareTask(const Node& node, const Plan& plan,
                                      const Diagnosis& diagnosis, const TaskFacts& facts);

}  // namespace rdmatune
