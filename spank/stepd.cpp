// In slurmstepd, before the tasks are forked: what this node has and who gets what of it, read by
// the program as the user. No hwloc, verbs or driver code runs in slurmstepd itself, and nothing
// here returns an error: that would drain the node or leave srun without its tasks' exit status.
#include <sys/mman.h>
#include <unistd.h>

#include "spank/plugin.hpp"

namespace rdmatune::spank {
namespace {

constexpr std::size_t kReportMax = 1 << 20;
constexpr std::size_t kShownLines = 200;  // the rank table of a node has a line per rank

/// slurmstepd sets this for the step's own GPUs, whichever way they were asked for, and removes
/// what a step without GPUs inherited.
bool hasGpus(const Environment& environment) {
    const std::string* gpus = environment.get("SLURM_STEP_GPUS");
    return gpus != nullptr && !gpus->empty();
}

void fail(const std::string& reason) {
    state().failure = reason;
    // With strict task_init fails and says it; srun may have said the same already.
    if (!state().note.strict && !state().note.told) {
        tell(hostName() + ": not bound: " + reason);
        if (state().said != nullptr) *state().said = 1;
    }
}

/// What was decided in srun, or, where its plugin is absent, what this node's own options say.
bool settle(const Environment& environment) {
    State& now = state();
    const std::string* told = environment.get(kStepVariable);
    const std::optional<StepNote> note = told == nullptr ? std::nullopt : StepNote::parse(*told);
    now.nested = note && note->nested;
    if (note && note->mode == Mode::Off) return false;
    if (note && note->refuse) {  // srun has said why
        now.note = *note;
        now.active = true;
        return false;
    }
    Sources sources = now.sources;
    // The flag has done its work in srun; a plugin of another version there may know other words.
    if (note) sources.flag.reset();
    const Result<Options> options = resolve(sources, note ? Environment() : switches(environment));
    if (note) {
        now.note = *note;
    } else {
        now.note = options ? noteOf(*options) : asked(sources, environment);
        // Only srun's plugin can tell; better no cores than the user's choice lost.
        now.note.cpu_bind = true;
    }
    if (now.note.mode == Mode::Off) return false;
    if (now.note.site_default && !hasGpus(environment)) return false;
    void* const shared =
        mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared != MAP_FAILED) now.said = static_cast<int*>(shared);
    now.active = true;
    if (!options) {
        fail(options.error().message);
        return true;
    }
    now.options = *options;
    return true;
}

void readNode(Handle handle, Environment environment) {
    State& now = state();
    if (const Status status = checkProgram(now.options, now.sources); !status)
        return fail(status.error().message);
    const auto tasks = handle.number(S_JOB_LOCAL_TASK_COUNT);
    const auto node = handle.number(S_JOB_NODEID);
    std::optional<ChildUser> user = handle.user();
    if (!tasks || !node || !user)
        return fail("Slurm does not say whose step this is, or how large");
    environment.keepForNode();
    passOn(now.options, now.sources, environment);
    ChildSpec spec;
    spec.argv = {now.options.program,    "node",      "--tasks",
                 std::to_string(*tasks), "--node-id", std::to_string(*node)};
    if (now.note.verbose) spec.argv.emplace_back("--verbose");
    spec.environment = environment.strings();
    spec.output_max = kReportMax;
    spec.timeout_s = now.options.node_timeout_s;
    // A slurmd that does not run as root (somebody tries Slurm out) has nobody else to become.
    if (getuid() == 0 || geteuid() == 0) spec.user = std::move(user);
    ChildOutcome outcome = runChild(spec);
    if (!outcome.succeeded() && outcome.end != ChildOutcome::End::Reaped)
        return fail(reasonOf(outcome, "reading this node's topology"));
    if (outcome.output.empty() || outcome.output.front() != '{')
        return fail("reading this node's topology gave no report");
    now.report = std::move(outcome.output);
    if (!now.note.quiet)
        for (const std::string& line : shownLines(outcome.errors, kShownLines)) tell(line);
    if (now.note.verbose && *node == 0)
        tell(hostName() + ": " + tookText("reading the topology", outcome.seconds));
}

}  // namespace

int stepdUserInit(Handle handle) {
    const auto step = handle.number(S_JOB_STEPID);
    if (!step || isSpecialStep(*step)) return 0;
    const Environment environment = handle.environment();
    if (settle(environment) && state().failure.empty()) readNode(handle, environment);
    return 0;
}

}  // namespace rdmatune::spank
