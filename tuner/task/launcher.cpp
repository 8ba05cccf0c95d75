#include "tuner/task/launcher.hpp"

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {

/// More processes than this on one node are a misread variable.
constexpr int kMaxTasks = 4096;

std::optional<int> number(const Environment& env, const char* name) {
    const std::string* value = lookUp(env, name);
    if (value == nullptr) return std::nullopt;
    return parseInt<int>(trim(*value));
}

struct Names {
    const char* launcher;
    const char* local_rank;
    const char* local_tasks;
};

/// Both variables of each launcher, from its own documentation; Hydra and Intel MPI share theirs.
constexpr Names kNames[] = {
    {"torchrun", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MVAPICH2", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"Intel MPI or MPICH", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"PALS", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    {"jsrun", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"},
    {"DeepSpeed", "LOCAL_RANK", "LOCAL_SIZE"},
    {"Horovod", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"},
    {"PMI", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"},
};

std::optional<LocalPlace> place(std::optional<int> rank, std::optional<int> tasks,
                                const char* launcher) {
    if (!rank || !tasks || *tasks < 1 || *tasks > kMaxTasks || *rank < 0 || *rank >= *tasks)
        return std::nullopt;
    return LocalPlace{*rank, *tasks, launcher};
}

/// Flux tells the job's size and nodes only; its tasks are spread evenly, the first nodes get more.
std::optional<LocalPlace> fluxPlace(const Environment& env) {
    const auto rank = number(env, "FLUX_TASK_LOCAL_ID");
    const auto size = number(env, "FLUX_JOB_SIZE");
    const auto nodes = number(env, "FLUX_JOB_NNODES");
    if (!rank || !size || !nodes || *nodes < 1) return std::nullopt;
    return place(rank, (*size + *nodes - 1) / *nodes, "Flux");
}

std::optional<LocalPlace> slurmPlace(const Environment& env) {
    const auto rank = number(env, "SLURM_LOCALID");
    const auto node = number(env, "SLURM_NODEID");
    // The step's list first: inside an allocation the job's list may describe more tasks.
    for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"})
        if (const std::string* list = lookUp(env, name))
            if (const auto found = place(rank, tasksOnNode(*list, node.value_or(0)), "Slurm"))
                return found;
    return place(rank, number(env, "SLURM_NTASKS_PER_NODE"), "Slurm");
}

}  // namespace

std::optional<int> tasksOnNode(std::string_view list, int node) {
    for (const auto part : split(trim(list), ',')) {
        const auto open = part.find("(x");
        const auto tasks = parseInt<int>(part.substr(0, open));
        std::optional<int> times = 1;
        if (open != std::string_view::npos) {
            if (!part.ends_with(')')) return std::nullopt;
            times = parseInt<int>(part.substr(open + 2, part.size() - open - 3));
        }
        if (!tasks || !times || *times < 1) return std::nullopt;
        if (node < *times) return tasks;
        node -= *times;
    }
    return std::nullopt;
}

LocalPlace localPlace(const Environment& env) {
    for (const Names& names : kNames)
        if (const auto found = place(number(env, names.local_rank), number(env, names.local_tasks),
                                     names.launcher))
            return *found;
    if (const auto found = fluxPlace(env)) return *found;
    if (const auto found = slurmPlace(env)) return *found;
    return {};
}

}  // namespace rdmatune
