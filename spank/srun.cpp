// In srun, after the step was created and before its tasks start: measure, and hand the profile on.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "spank/interrupt.hpp"
#include "spank/plugin.hpp"
#include "tuner/base/text.hpp"

namespace rdmatune::spank {
namespace {

// Beyond the budget: starting one agent per node, and ending them in order.
constexpr double kStartSeconds = 5;
constexpr double kEndSeconds = 2;
constexpr std::size_t kShownLines = 60;

void hand(const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
}

void handNote(const StepNote& note) {
    hand(kStepVariable, note.str());
}

/// Nothing of this step may run. Where plugstack.conf says `required`, the -1 ends srun here; where
/// it says `optional`, Slurm ignores that, and every task refuses to start instead.
int refuse(StepNote note, const std::string& reason) {
    tellError(reason);
    note.mode = Mode::Auto;  // `off` would leave the tasks alone
    note.refuse = true;
    handNote(note);
    return -1;
}

/// The step runs without a measured profile: says why, once. With strict it does not run.
int untuned(StepNote note, const std::string& reason) {
    if (note.strict) return refuse(note, "strict, so nothing is started: " + reason);
    tell("untuned: " + reason);
    note.told = true;
    hand(kUntunedVariable, reason);
    handNote(note);
    return 0;
}

/// Not measured because nobody wants it; `rdma-tune explain` and `verbose` can still say why.
int unmeasured(const StepNote& note, const std::string& reason) {
    hand(kUntunedVariable, reason);
    handNote(note);
    return 0;
}

/// Whether srun's own arguments contain this option; without /proc nobody can tell.
bool onCommandLine(std::string_view option) {
    std::FILE* const file = std::fopen("/proc/self/cmdline", "rbe");
    if (file == nullptr) return false;
    char text[65536];
    const std::size_t size = std::fread(text, 1, sizeof text, file);
    std::fclose(file);
    for (const std::string_view argument : split(std::string_view(text, size), '\0'))
        if (argument.starts_with(option)) return true;
    return false;
}

/// Whether the user chose a CPU binding. In the tasks themselves Slurm shows its own choice in the
/// same variables, so this can be known in srun alone, whose environment has only what was given.
bool cpuBindGiven(const Environment& environment) {
    const std::string* type = environment.get("SLURM_CPU_BIND_TYPE");
    if (type == nullptr || type->empty()) return false;
    // An srun started inside a task inherits the mask that Slurm gave to that task.
    const bool inherited = *type == "mask_cpu:" && environment.get("SLURM_LOCALID") != nullptr;
    return !inherited || onCommandLine("--cpu-bind");
}

struct Step {
    std::uint32_t job = 0;
    std::uint32_t step = 0;
    std::uint32_t nodes = 0;
    std::uint32_t tasks = 0;
    std::string node_list;  ///< empty: not known
};

ChildSpec measuring(const Step& step, const Options& options, Environment environment) {
    passOn(options, state().sources, environment);
    environment.set(kNestedVariable, "1");
    environment.set(kExpectVariable, "1");
    // SLURM_JOB_NODELIST names the whole allocation; this step may have less.
    if (!step.node_list.empty()) environment.set("SLURM_STEP_NODELIST", step.node_list);
    char budget[32];
    std::snprintf(budget, sizeof budget, "%g", options.budget_s);
    ChildSpec spec;
    spec.argv = {options.program, "measure",
                 "--slurm-job",   std::to_string(step.job),
                 "--slurm-step",  std::to_string(step.step),
                 "--nodes",       std::to_string(step.nodes),
                 "--tasks",       std::to_string(step.tasks),
                 "--budget",      budget};
    if (options.refresh) spec.argv.emplace_back("--refresh");
    spec.environment = environment.strings();
    spec.timeout_s = options.budget_s + kStartSeconds;
    spec.grace_s = kEndSeconds;
    spec.cancelled = Interrupt::happened;
    return spec;
}

int measure(const Step& step, StepNote note, const Options& options,
            const Environment& environment) {
    if (const Status status = checkProgram(options, state().sources); !status)
        return untuned(note, status.error().message);
    const ChildOutcome outcome = [&] {
        const Interrupt watch;
        return runChild(measuring(step, options, environment));
    }();
    if (outcome.end == ChildOutcome::End::Cancelled)
        return refuse(note, "interrupted while measuring, so nothing is started");
    // A program that does not keep its own time limit would hang on every node as well.
    if (outcome.end == ChildOutcome::End::TimedOut) note.mode = Mode::Off;
    // Reaped: something in this srun ignores SIGCHLD; then what was printed decides.
    if (!outcome.succeeded() && outcome.end != ChildOutcome::End::Reaped)
        return untuned(note, reasonOf(outcome, "measuring"));
    const Result<Measured> measured = parseMeasured(outcome.output);
    if (!measured)
        return untuned(
            note, outcome.succeeded() ? measured.error().message : reasonOf(outcome, "measuring"));
    hand(kProfileVariable, measured->profile);
    if (!measured->agreed.empty()) hand(kAgreedVariable, measured->agreed);
    handNote(note);
    if (!note.quiet)
        for (const std::string& line : shownLines(outcome.errors, kShownLines)) tell(line);
    if (note.verbose) tell(tookText("measuring", outcome.seconds));
    return 0;
}

int decide(Handle handle, Step step, const Environment& environment) {
    const Sources& sources = state().sources;
    const Result<Options> options = resolve(sources, environment);
    if (!options) {
        const StepNote wanted = asked(sources, environment);
        if (wanted.mode != Mode::Off) return untuned(wanted, options.error().message);
        // Nobody asked; slurmd's log has the same error for the administrator.
        spank::note(options.error().message);
        return 0;
    }
    StepNote note = noteOf(*options);
    note.quiet = isQuiet();
    note.cpu_bind = cpuBindGiven(environment);
    if (note.mode == Mode::Off) {
        // Said aloud only where a node might think otherwise.
        if (sources.flag || environment.get("RDMA_TUNE_MODE") != nullptr) handNote(note);
        return 0;
    }
    if (note.mode == Mode::Bind)
        return unmeasured(note, "bind was asked for, so nothing was measured");
    if (state().components > 1)
        return untuned(note, "the components of a heterogeneous step are bound but not measured");
    const auto nodes = handle.number(S_JOB_NNODES);
    const auto tasks = handle.number(S_JOB_TOTAL_TASK_COUNT);
    if (!nodes || !tasks) return untuned(note, "Slurm does not say how large this step is");
    step.nodes = *nodes;
    step.tasks = *tasks;
    if (step.nodes < 2) return unmeasured(note, "one node: there is no network to measure");
    // The one question to slurmctld: which nodes, and are there GPUs.
    if (const std::optional<StepFacts> facts = askStep(step.job, step.step)) {
        step.node_list = facts->nodes;
        if (note.site_default && !facts->has_gpus) {
            note.mode = Mode::Off;
            handNote(note);
            return 0;
        }
    } else if (note.site_default) {
        return unmeasured(note, "Slurm did not say whether this step has GPUs");
    }
    return measure(step, note, *options, environment);
}

}  // namespace

int srunLocalUserInit(Handle handle) {
    Environment environment(environ);
    // An srun inside a tuned task inherits what belongs to the outer step. Taking a variable out of
    // environ would not keep it from the tasks: Slurm copied it before it called us.
    std::vector<std::string> inherited;
    if (const std::string* set = environment.get(kSetVariable))
        inherited = stillOurs(*set, environment);
    for (const char* name :
         {kProfileVariable, kAgreedVariable, kUntunedVariable, kStepVariable, kInheritedVariable}) {
        if (environment.get(name) != nullptr) hand(name, "");
        environment.unset(name);
    }
    for (const std::string& name : inherited) environment.unset(name);
    if (!inherited.empty()) hand(kInheritedVariable, join(inherited, ","));
    if (environment.get(kNestedVariable) != nullptr) {
        StepNote note;
        note.nested = true;
        handNote(note);
        return 0;
    }
    const auto job = handle.number(S_JOB_ID);
    const auto step = handle.number(S_JOB_STEPID);
    if (step && isSpecialStep(*step)) return 0;
    Step here;
    here.job = job.value_or(0);
    here.step = step.value_or(0);
    return decide(handle, here, environment);
}

}  // namespace rdmatune::spank
