#include "spank/slurm.hpp"

#include <dlfcn.h>
#include <slurm/slurm.h>
#include <unistd.h>

#include <ctime>
#include <string_view>
#include <type_traits>

#include "tuner/base/text.hpp"

namespace rdmatune::spank {
namespace {

using StepResponse = job_step_info_response_msg_t;

/// slurm_get_job_steps, as this Slurm's header declares it: its arguments changed over the years.
template <class Ask>
int callAsk(Ask ask, std::uint32_t job, std::uint32_t step, StepResponse** response) {
    if constexpr (std::is_invocable_v<Ask, std::time_t, std::uint32_t, std::uint32_t,
                                      StepResponse**, std::uint16_t>) {
        return ask(std::time_t{0}, job, step, response, std::uint16_t{0});
    } else if constexpr (std::is_invocable_v<Ask, slurm_step_id_t*, StepResponse**,
                                             std::uint16_t>) {
        slurm_step_id_t id{};
        id.job_id = job;
        id.step_id = step;
        id.step_het_comp = NO_VAL;
        return ask(&id, response, std::uint16_t{0});
    } else {
        return -1;
    }
}

/// "gres:gpu:4", "gres/gpu:a100:2", "cpu=8,gres/gpu=4", in whatever list of resources.
bool namesGpus(const char* list) {
    if (list == nullptr) return false;
    for (const std::string_view item : split(list, ',')) {
        const bool none = item.ends_with(":0") || item.ends_with("=0");
        if (item.find("gpu") != std::string_view::npos && !none) return true;
    }
    return false;
}

/// What the step was given (which has GPUs only where the site accounts for them) and what it asked
/// for, its job's wishes included.
template <class Step>
bool stepHasGpus(const Step& step) {
    if (namesGpus(step.tres_per_step) || namesGpus(step.tres_per_node) ||
        namesGpus(step.tres_per_socket) || namesGpus(step.tres_per_task))
        return true;
    if constexpr (requires { step.tres_alloc_str; })
        return namesGpus(step.tres_alloc_str);
    else if constexpr (requires { step.tres_fmt_alloc_str; })
        return namesGpus(step.tres_fmt_alloc_str);
    else
        return false;
}

/// A function of the process that loaded us. Not linked directly: with immediate binding one that a
/// Slurm does not export would keep the whole plugin, and with it srun, from starting.
template <class Function>
Function find(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

std::optional<std::uint32_t> Handle::number(spank_item_t item) const {
    std::uint32_t value = 0;
    if (spank_get_item(handle_, item, &value) != ESPANK_SUCCESS) return std::nullopt;
    return value;
}

std::optional<int> Handle::localTask() const {
    int value = 0;
    if (spank_get_item(handle_, S_TASK_ID, &value) != ESPANK_SUCCESS) return std::nullopt;
    return value;
}

Environment Handle::environment() const {
    char** strings = nullptr;
    if (spank_get_item(handle_, S_JOB_ENV, &strings) != ESPANK_SUCCESS) return {};
    Environment environment(strings);
    environment.dropEmpty("SLURM_RDMA_TUNE_");
    return environment;
}

std::optional<ChildUser> Handle::user() const {
    uid_t uid = 0;
    gid_t gid = 0;
    if (spank_get_item(handle_, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
        spank_get_item(handle_, S_JOB_GID, &gid) != ESPANK_SUCCESS)
        return std::nullopt;
    ChildUser user{uid, gid, {}};
    gid_t* groups = nullptr;
    int count = 0;
    if (spank_get_item(handle_, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) == ESPANK_SUCCESS &&
        groups != nullptr && count > 0)
        user.groups.assign(groups, groups + count);
    return user;
}

bool Handle::set(const std::string& name, const std::string& value) const {
    return spank_setenv(handle_, name.c_str(), value.c_str(), 1) == ESPANK_SUCCESS;
}

bool Handle::unset(const std::string& name) const {
    const spank_err_t result = spank_unsetenv(handle_, name.c_str());
    return result == ESPANK_SUCCESS || result == ESPANK_ENV_NOEXIST;
}

bool isSpecialStep(std::uint32_t step_id) {
    // All of Slurm's ids for steps that are not srun's lie at the upper end of the 32 bits.
    static_assert(SLURM_BATCH_SCRIPT > SLURM_MAX_NORMAL_STEP_ID &&
                  SLURM_EXTERN_CONT > SLURM_MAX_NORMAL_STEP_ID &&
                  SLURM_INTERACTIVE_STEP > SLURM_MAX_NORMAL_STEP_ID &&
                  SLURM_PENDING_STEP > SLURM_MAX_NORMAL_STEP_ID);
    return step_id > SLURM_MAX_NORMAL_STEP_ID;
}

std::optional<StepFacts> askStep(std::uint32_t job, std::uint32_t step) {
    const auto ask = find<decltype(&slurm_get_job_steps)>("slurm_get_job_steps");
    const auto free_response = find<decltype(&slurm_free_job_step_info_response_msg)>(
        "slurm_free_job_step_info_response_msg");
    if (ask == nullptr || free_response == nullptr) return std::nullopt;
    StepResponse* response = nullptr;
    if (callAsk(ask, job, step, &response) != 0 || response == nullptr) return std::nullopt;
    std::optional<StepFacts> facts;
    if (response->job_step_count > 0) {
        const job_step_info_t& found = response->job_steps[0];
        facts.emplace();
        if (found.nodes != nullptr) facts->nodes = found.nodes;
        facts->has_gpus = stepHasGpus(found);
    }
    free_response(response);
    return facts;
}

bool isQuiet() {
    constexpr int kInfo = 3;  // LOG_LEVEL_INFO of Slurm's log.h, which is not installed
    const auto level = find<int (*)()>("slurm_get_log_level");
    return level != nullptr && level() < kInfo;
}

void tell(const std::string& text) {
    slurm_spank_log("rdma-tune: %s", text.c_str());
}

void tellError(const std::string& text) {
    slurm_error("rdma-tune: %s", text.c_str());
}

void note(const std::string& text) {
    slurm_debug("rdma-tune: %s", text.c_str());
}

}  // namespace rdmatune::spank
