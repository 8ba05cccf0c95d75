// In the task's own process, as the user, last before its program starts: Slurm has written
// CUDA_VISIBLE_DEVICES for the last time and task/affinity has bound, so what is set here holds.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "spank/plugin.hpp"
#include "tuner/base/text.hpp"
#include "tuner/base/version.hpp"

namespace rdmatune::spank {
namespace {

constexpr std::size_t kReplyMax = 256 * 1024;

/// True for the first of this node's tasks that asks: all would fail for the same reason.
bool firstToSay() {
    int* const said = state().said;
    return said == nullptr || __atomic_exchange_n(said, 1, __ATOMIC_RELAXED) == 0;
}

/// The tuner as this task will name it: the user's own words are read here, as the user.
const std::string& tunerOf(const Environment& environment) {
    const std::string* own = environment.get("RDMA_TUNE_TUNER");
    return own != nullptr && !own->empty() ? *own : state().options.tuner;
}

/// Ranks that decide differently hang, so a task that could not be prepared still gets the profile
/// and the tuner that its fellows get; only its binding is lost.
void giveProfileAlone(Handle handle, const Environment& environment) {
    const std::string* profile = environment.get(kProfileVariable);
    const std::string& tuner = tunerOf(environment);
    if (profile == nullptr || tuner.empty() || access(tuner.c_str(), R_OK) != 0) return;
    if (environment.get("NCCL_TUNER_PLUGIN") != nullptr) return;
    if (environment.get("RDMA_TUNE_PROFILE") == nullptr &&
        !handle.set("RDMA_TUNE_PROFILE", *profile))
        return;
    (void)handle.set("NCCL_TUNER_PLUGIN", tuner);
}

/// Ends this process, which has not become the user's program yet. Slurm does the same when a hook
/// returns -1, but only where plugstack.conf says `required`. The node is not drained.
[[noreturn]] void refuse() {
    _exit(1);
}

int fail(Handle handle, const Environment& environment, const std::string& reason) {
    if (state().note.strict) {
        if (firstToSay()) tellError("strict, so " + hostName() + " starts no task: " + reason);
        refuse();
    }
    if (!state().note.told && firstToSay()) tell(hostName() + ": not bound: " + reason);
    giveProfileAlone(handle, environment);
    return 0;
}

/// In a container of pyxis this hook already sees the image's files. The static program beside the
/// full one runs there whatever the image's C library is, once the site has mounted it
/// (conf/enroot).
std::string taskProgram(const std::string& program) {
    std::string alone = program + "-task";
    return access(alone.c_str(), X_OK) == 0 ? alone : program;
}

Status bindTo(const CpuSet& cpus) {
    const std::vector<int> list = cpus.list();
    const int last = list.back();
    cpu_set_t* const mask = CPU_ALLOC(static_cast<std::size_t>(last) + 1);
    if (mask == nullptr) return Error{"out of memory"};
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(last) + 1);
    CPU_ZERO_S(size, mask);
    for (const int cpu : list) CPU_SET_S(static_cast<std::size_t>(cpu), size, mask);
    const int result = sched_setaffinity(0, size, mask);
    const int reason = errno;
    CPU_FREE(mask);
    if (result != 0) return Error{"cores " + cpus.str() + ": " + std::strerror(reason)};
    return Done{};
}

/// Registered memory counts against the memlock limit; RDMA needs as much as the node allows.
/// Slurm applies the limits of the submitting shell after this hook, unless its variable is gone.
void raiseMemlock(Handle handle) {
    struct rlimit limit {};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
    const bool raised = limit.rlim_cur != limit.rlim_max;
    limit.rlim_cur = limit.rlim_max;
    if (raised && setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
    (void)handle.unset("SLURM_RLIMIT_MEMLOCK");
    if (raised && state().note.verbose && handle.localTask() == 0)
        tell(hostName() + ": memlock raised to the hard limit");
}

/// Takes what an outer step's tuning left in the environment out of `environment`; the names.
std::vector<std::string> forgetOuterStep(Environment& environment) {
    std::vector<std::string> names;
    if (const std::string* list = environment.get(kInheritedVariable))
        for (const std::string_view name : split(*list, ',')) names.emplace_back(name);
    for (const std::string& name : names) environment.unset(name);
    return names;
}

/// The reply is complete and sound before the first of it is applied.
Status apply(Handle handle, const TaskReply& reply) {
    for (const auto& [name, value] : reply.set)
        if (!handle.set(name, value)) return Error{name + " could not be set"};
    for (const std::string& name : reply.unset)
        if (!handle.unset(name)) return Error{name + " could not be unset"};
    if (!reply.set.empty() && !handle.set(kSetVariable, remember(reply.set)))
        return Error{std::string(kSetVariable) + " could not be set"};
    return Done{};
}

}  // namespace

int taskInit(Handle handle) {
    const State& now = state();
    if (now.nested) (void)handle.set(kPluginVariable, kVersion);
    if (!now.active) return 0;
    if (now.note.refuse) refuse();
    Environment environment = handle.environment();
    // The program sees the task without them, and sets anew what holds for this step.
    for (const std::string& name : forgetOuterStep(environment)) (void)handle.unset(name);
    if (!now.failure.empty()) return fail(handle, environment, now.failure);
    raiseMemlock(handle);
    const std::optional<int> local = handle.localTask();
    const auto count = handle.number(S_JOB_LOCAL_TASK_COUNT);
    if (!local || !count)
        return fail(handle, environment, "Slurm does not say which task of the node this is");
    const std::string program = taskProgram(now.options.program);
    if (access(program.c_str(), X_OK) != 0)
        return fail(handle, environment,
                    program + " is not there for the task; in a container, mount " + program +
                        "-task and the tuner (docs/containers.md)");
    // Without strict a task runs without its tuner, and is told so. With it none may differ from
    // its fellows on other nodes, whose containers may have what this one lacks.
    const std::string& tuner = tunerOf(environment);
    if (now.note.strict && environment.get(kProfileVariable) != nullptr &&
        environment.get("NCCL_TUNER_PLUGIN") == nullptr && access(tuner.c_str(), R_OK) != 0)
        return fail(handle, environment,
                    (tuner.empty() ? "libnccl-tuner-rdmatune.so" : tuner) +
                        " is not there for the task; in a container, mount it "
                        "(docs/containers.md)");
    ChildSpec spec;
    spec.argv = {program,         "task",
                 "--local-rank",  std::to_string(*local),
                 "--local-tasks", std::to_string(*count)};
    if (now.note.cpu_bind) spec.argv.emplace_back("--cpu-bind-by-user");
    if (now.note.verbose) spec.argv.emplace_back("--verbose");
    spec.input = section("env", environment.block()) + section("report", now.report) + "end 0\n";
    Environment own = environment;
    own.keepForNode();
    passOn(now.options, now.sources, own);
    spec.environment = own.strings();
    spec.output_max = kReplyMax;
    spec.timeout_s = now.options.task_timeout_s;
    const ChildOutcome outcome = runChild(spec);
    const std::string who = "preparing task " + std::to_string(*local);
    if (outcome.end != ChildOutcome::End::Reaped && !outcome.succeeded())
        return fail(handle, environment, reasonOf(outcome, who));
    const Result<TaskReply> reply = parseTaskReply(outcome.output);
    if (!reply) return fail(handle, environment, who + " " + reply.error().message);
    // The cores first: when the kernel refuses them, nothing has been changed yet.
    if (reply->cpus)
        if (const Status status = bindTo(*reply->cpus); !status)
            return fail(handle, environment, who + ": " + status.error().message);
    if (const Status status = apply(handle, *reply); !status)
        return fail(handle, environment, who + ": " + status.error().message);
    if (!now.note.quiet)
        for (const std::string& line : reply->say) tell(line);
    const auto node = handle.number(S_JOB_NODEID);
    if (now.note.verbose && node == 0 && *local == 0)
        tell(hostName() + ": " + tookText(who, outcome.seconds));
    return 0;
}

}  // namespace rdmatune::spank
