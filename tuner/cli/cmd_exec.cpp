// `rdma-tune exec -- COMMAND`: what the SPANK plugin does for a task of srun, where there is no
// srun: under torchrun, mpirun, in a pod, or for one process by itself.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tuner/cli/command.hpp"
#include "tuner/cli/this_node.hpp"
#include "tuner/task/look.hpp"

namespace rdmatune::cli {
namespace {

constexpr int kExitNotExecutable = 126;  // as a shell says it
constexpr int kExitNotFound = 127;

struct ExecOptions {
    int tasks = 0;        ///< 0: as the launcher says
    int local_rank = -1;  ///< -1: as the launcher says
    bool verbose = false;
    bool strict = false;
    bool no_cpus = false;
    std::string profile;
    std::string config;
    SystemRoots roots;
    std::vector<std::string> command;
};

void tell(const std::string& line) {
    std::fprintf(stderr, "rdma-tune: %s\n", oneLine(line).c_str());
}

/// Where the launcher's own words and the command line leave this process.
Result<LocalPlace> placeOf(const ExecOptions& given, const Environment& env) {
    LocalPlace place = localPlace(env);
    if (given.tasks > 0) {
        place.local_tasks = given.tasks;
        if (given.local_rank < 0 && place.local_rank >= given.tasks)
            return Error{"--tasks " + std::to_string(given.tasks) + " does not fit local rank " +
                         std::to_string(place.local_rank) + " of " + place.launcher};
    }
    if (given.local_rank >= 0) place.local_rank = given.local_rank;
    if (place.local_rank >= place.local_tasks)
        return Error{"--local-rank " + std::to_string(place.local_rank) + " needs --tasks above " +
                     std::to_string(place.local_rank)};
    return place;
}

/// Variables by which a user tells another launcher how to bind: then this leaves the CPUs alone.
bool boundByUser(const Environment& env) {
    for (const char* name :
         {"OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy",
          "I_MPI_PIN_DOMAIN", "I_MPI_PIN_PROCESSOR_LIST", "MV2_CPU_MAPPING"})
        if (lookUp(env, name) != nullptr) return true;
    return false;
}

/// Registered memory counts against this limit; a process may raise it to the hard one itself.
void raiseMemlock() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_MEMLOCK, &limit);  // stays as it is on failure; memlockLimit() tells
}

Result<TaskOutcome> decide(const ExecOptions& given, Environment env, bool& verbose, bool& strict) {
    const auto options = siteOptions(env, given.config);
    if (!options) return options.error();
    verbose = verbose || options->verbose;
    strict = strict || options->strict;
    const auto place = placeOf(given, env);
    if (!place) return place.error();
    const bool slurm = place->launcher == "Slurm" && place->local_tasks > 1;
    const auto report = planThisNode(*options, env, place->local_tasks, given.roots, slurm);
    if (!report) return report.error();
    if (!given.profile.empty()) env["RDMA_TUNE_PROFILE"] = given.profile;
    TaskFacts facts = lookAtTask(report->node, env, *place, report->tuner, given.roots);
    if (!given.profile.empty()) facts.env.erase("RDMA_TUNE_PROFILE");  // so that it is set
    facts.cpu_bind_by_user = given.no_cpus || boundByUser(env);
    auto outcome = outcomeFor(*report, facts);
    if (!outcome) return outcome.error();
    if (facts.profile.empty() && !facts.untuned_reason.empty() && place->local_rank == 0)
        outcome->warnings.push_back("NCCL is not tuned: " + facts.untuned_reason);
    if (verbose) {
        tell("local rank " + std::to_string(place->local_rank) + " of " +
             std::to_string(place->local_tasks) +
             (place->launcher.empty() ? std::string{} : " (" + place->launcher + ")"));
        for (const std::string& note : report->plan.notes) tell(note);
    }
    return outcome;
}

void apply(TaskOutcome& outcome) {
    for (const Setting& setting : outcome.settings) {
        if (setting.action == Setting::Action::Set)
            ::setenv(setting.name.c_str(), setting.value.c_str(), 1);
        if (setting.action == Setting::Action::Unset) ::unsetenv(setting.name.c_str());
    }
    if (!outcome.cpus.empty() && !setAffinity(outcome.cpus))
        outcome.warnings.push_back("the kernel refused CPUs " + outcome.cpus.str() + ": " +
                                   std::strerror(errno));
}

int replaceBy(const std::vector<std::string>& command) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv.front(), argv.data());
    const int reason = errno;
    fail("exec: " + command.front() + ": " + std::strerror(reason));
    return reason == ENOENT ? kExitNotFound : kExitNotExecutable;
}

int runExec(const ExecOptions& given) {
    bool verbose = given.verbose;
    bool strict = given.strict;
    raiseMemlock();
    auto outcome = decide(given, ownEnvironment(), verbose, strict);
    if (!outcome) {
        if (strict)
            return fail(outcome.error().message + "; strict, so the command is not started");
        tell(outcome.error().message + "; the command runs as it is");
        return replaceBy(given.command);
    }
    apply(*outcome);
    for (const std::string& warning : outcome->warnings) tell(warning);
    if (verbose)
        for (const std::string& line : explainOutcome(*outcome)) tell(line);
    return replaceBy(given.command);
}

}  // namespace

Command addExec(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand(
        "exec", "Bind and set up this process, then become COMMAND (where there is no srun)");
    auto given = std::make_shared<ExecOptions>();
    subcommand
        ->add_option(
            "--tasks", given->tasks,
            "Processes on this node; by default as torchrun, mpirun, srun or Flux say, else 1")
        ->type_name("N")
        ->check(CLI::Range(1, 65536));
    subcommand
        ->add_option("--local-rank", given->local_rank,
                     "Which of them this is; by default as the launcher says, else 0")
        ->type_name("L")
        ->check(CLI::NonNegativeNumber);
    subcommand->add_flag("--verbose", given->verbose, "Say what was set, what was left, and why");
    subcommand->add_flag("--strict", given->strict, "Do not start COMMAND when planning fails");
    subcommand->add_flag("--no-cpus", given->no_cpus, "Leave the CPU affinity alone");
    subcommand
        ->add_option("--profile", given->profile,
                     "What `rdma-tune measure` printed; by default RDMA_TUNE_PROFILE")
        ->type_name("TEXT");
    subcommand->add_option("--config", given->config, "Instead of /etc/rdma-tune/rdma-tune.conf")
        ->type_name("FILE");
    subcommand->add_option("--dev-root", given->roots.dev, "Device files are here instead of /dev")
        ->type_name("DIR")
        ->group("");
    subcommand->add_option("COMMAND", given->command, "The program and its arguments, after --")
        ->required();
    subcommand->positionals_at_end();
    return [given] { return runExec(*given); };
}

}  // namespace rdmatune::cli
