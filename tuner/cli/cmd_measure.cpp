#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "tuner/base/text.hpp"
#include "tuner/base/version.hpp"
#include "tuner/cli/command.hpp"
#include "tuner/cli/measure_output.hpp"
#include "tuner/config/options.hpp"
#include "tuner/config/rule_text.hpp"
#include "tuner/fabric/conductor.hpp"
#include "tuner/fabric/hostlist.hpp"
#include "tuner/fabric/launch.hpp"
#include "tuner/fabric/reuse.hpp"
#include "tuner/fabric/sample.hpp"

namespace rdmatune::cli {
namespace {

using namespace fabric;

struct MeasureOptions {
    std::string job;
    std::string step;
    int nodes = 0;
    int tasks = 0;
    bool refresh = false;
    std::optional<double> budget_s;
    int local = 0;
    std::string hosts;
    std::string launch;
    std::string remote_program;
    bool tcp = false;
    bool json = false;
    bool verbose = false;
    bool collectives = false;
    std::vector<std::size_t> sizes;
};

/// srun's plugin puts its own prefix in front of each line; for people it is added here.
class Speaker {
  public:
    Speaker(bool for_plugin) : prefix_(for_plugin ? "" : "rdma-tune: ") {}
    void say(std::string_view text) const {
        std::fprintf(stderr, "%s%.*s\n", prefix_, static_cast<int>(text.size()), text.data());
    }

  private:
    const char* prefix_;
};

Variables ownVariables() {
    Variables out;
    for (char** at = environ; *at != nullptr; ++at) out.emplace_back(*at);
    return out;
}

std::string ownProgram() {
    char path[4096];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : std::string("rdma-tune");
}

/// What to start, and for whom.
struct Start {
    std::vector<Invocation> commands;
    Assignment assignment;
    std::optional<ReuseKey> key;  ///< set when the result may be kept for later steps
};

/// On behalf of a Slurm step, or inside an allocation by hand.
Result<Start> startInSlurm(const MeasureOptions& given, const Options& options,
                           Assignment assignment, const Variables& own,
                           std::vector<std::string>& notes) {
    SlurmStep step{given.job, given.step, given.nodes, {}};
    if (step.job.empty()) step.job = valueOf(own, "SLURM_JOB_ID").value_or("");
    if (step.job.empty())
        return Error{
            "nothing to measure: run it inside a Slurm allocation, or give --hosts with --launch, "
            "or --local N"};
    const Deadline deadline =
        Clock::now() + std::chrono::milliseconds(static_cast<long>(assignment.budget_s * 400));
    const Result<std::vector<std::string>> hosts = stepHosts(step, own, deadline);
    if (!hosts) return hosts.error();
    if (hosts->size() < 2) return Error{"one node: there is no network to measure"};
    assignment.step_nodes = static_cast<int>(hosts->size());
    Start start;
    start.key =
        ReuseKey{valueOf(own, "SLURM_CLUSTER_NAME").value_or(""), step.job,
                 valueOf(own, "SLURM_RESTART_COUNT").value_or("0"), join(*hosts, ","), kVersion};
    assignment.names = *hosts;
    if (static_cast<int>(hosts->size()) > options.sample_nodes) {
        const Result<std::string> topology =
            outputOf({{"scontrol", "show", "topology"}, agentVariables(own)}, deadline);
        const Sample sample =
            sampleHosts(*hosts, topology ? *topology : std::string(), options.sample_nodes);
        assignment.names = sample.hosts;
        notes.push_back(sample.text);
    }
    assignment.agents = static_cast<int>(assignment.names.size());
    start.commands.push_back(
        srunCommand(step, assignment.names, ownProgram(), assignment.budget_s, own));
    start.assignment = std::move(assignment);
    return start;
}

Result<Start> prepare(const MeasureOptions& given, const Options& options, Assignment assignment,
                      const Variables& own, std::vector<std::string>& notes) {
    if (given.local == 0 && given.hosts.empty())
        return startInSlurm(given, options, std::move(assignment), own, notes);
    Start start;
    if (given.local > 0) {
        start.commands = localCommands(given.local, ownProgram(), assignment.budget_s, own);
        assignment.agents = given.local;
    } else {
        Result<std::vector<std::string>> hosts = expandHosts(given.hosts);
        if (!hosts) return hosts.error();
        if (hosts->size() < 2) return Error{"--hosts needs at least two hosts"};
        if (given.launch.empty())
            return Error{"--hosts needs --launch, for example --launch 'ssh {host}'"};
        Result<std::vector<Invocation>> commands =
            templateCommands(given.launch, *hosts,
                             given.remote_program.empty() ? ownProgram() : given.remote_program,
                             assignment.budget_s, own);
        if (!commands) return commands.error();
        start.commands = std::move(*commands);
        assignment.agents = static_cast<int>(hosts->size());
        assignment.names = std::move(*hosts);
    }
    assignment.step_nodes = assignment.agents;
    start.assignment = std::move(assignment);
    return start;
}

std::optional<std::string> profileText(const FabricProfile& profile) {
    char text[kProfileTextMax];
    if (formatProfile(profile, text, sizeof text) == 0) return std::nullopt;
    return std::string(text);
}

/// The kept profile with today's rules, and the kept agreement.
std::optional<std::string> keptText(const ReuseStore& store, const ReuseKey& key,
                                    const std::string& rules, FabricProfile& profile,
                                    std::string& agreement) {
    const Result<std::string> kept = store.load(key);
    if (!kept) return std::nullopt;
    const auto lines = split(*kept, '\n');
    if (lines.size() < 2 ||
        parseProfile(std::string(lines[0]).c_str(), profile) != ProfileError::None)
        return std::nullopt;
    if (!Agreement::parse(lines[1])) return std::nullopt;
    agreement = lines[1];
    std::fill(std::begin(profile.rules), std::end(profile.rules), '\0');
    rules.copy(profile.rules, std::min(rules.size(), kProfileRulesMax - 1));
    return profileText(profile);
}

int run(const MeasureOptions& given) {
    const auto started = Clock::now();
    std::signal(SIGPIPE, SIG_IGN);
    const Speaker speaker(!given.step.empty());
    const auto refuse = [&](std::string_view why) {
        speaker.say(why);
        return kExitFailure;
    };
    const Result<Options> options = loadOptions();
    if (!options) return refuse(options.error().message);
    const Result<std::string> rules = compileRules(options->rules, options->rule_origins);
    if (!rules) return refuse(rules.error().message);

    Assignment assignment;
    assignment.start = started;
    assignment.budget_s = given.budget_s.value_or(options->budget_s);
    assignment.latency_factor = options->slow_latency_factor;
    assignment.bandwidth_fraction = options->slow_bandwidth_fraction;
    assignment.verbs = !given.tcp && given.local == 0;
    assignment.gpu_memory = options->gpu_memory;
    assignment.rules = *rules;
    if (given.collectives || !given.sizes.empty())
        assignment.collective_sizes =
            given.sizes.empty() ? std::vector<std::size_t>{8, 4096, 65536, 1 << 20, 16 << 20}
                                : given.sizes;

    const Variables own = ownVariables();
    std::vector<std::string> notes;
    Result<Start> start = prepare(given, *options, std::move(assignment), own, notes);
    if (!start) return refuse(start.error().message);

    const ReuseStore store;
    const bool refresh = given.refresh || options->refresh || given.json || given.tcp ||
                         !start->assignment.collective_sizes.empty();
    if (start->key && !refresh) {
        FabricProfile profile;
        std::string agreement;
        const auto text = keptText(store, *start->key, *rules, profile, agreement);
        // The same number may have been another job's before the cluster was set up anew.
        const auto begin =
            text ? jobStart(start->key->job, own, Clock::now() + std::chrono::seconds(1))
                 : std::nullopt;
        if (text && store.savedAt(*start->key) >= begin.value_or(0)) {
            std::printf("%s\n%s\n", text->c_str(), agreement.c_str());
            if (given.verbose)
                speaker.say("measured earlier in this allocation: " + profileToText(profile));
            if (profile.slow_node[0] != '\0')
                speaker.say("node " + std::string(profile.slow_node) +
                            " was slow when this allocation was measured");
            return kExitOk;
        }
    }

    Crew crew;
    for (const Invocation& command : start->commands)
        if (Status status = crew.start(command); !status) return refuse(status.error().message);
    Outcome outcome = conduct(crew, start->assignment);
    const std::chrono::duration<double> taken = Clock::now() - started;
    outcome.notes.insert(outcome.notes.begin(), notes.begin(), notes.end());

    const auto text = outcome.usable ? profileText(outcome.profile) : std::nullopt;
    if (outcome.usable && !text) {
        outcome.usable = false;
        outcome.reason = "the profile cannot be written; are the configured rules too long?";
    }
    if (given.json)
        std::printf("%s\n", measurementToJson(outcome, taken.count(), text.value_or("")).c_str());
    else if (text)
        std::printf("%s\n%s\n", text->c_str(), outcome.agreement.str().c_str());
    std::fflush(stdout);
    if (!outcome.usable) speaker.say(outcome.reason);
    for (const std::string& note : outcome.notes) speaker.say(note);
    // Who asks for collectives wants to see them; in JSON they are anyhow.
    const bool asked = !start->assignment.collective_sizes.empty() && !given.json;
    if (given.verbose || asked || (isatty(STDOUT_FILENO) == 1 && !given.json))
        for (const std::string& one : measurementToText(outcome, taken.count())) speaker.say(one);
    if (text && start->key && !given.tcp)
        if (const Status status =
                store.save(*start->key, *text + "\n" + outcome.agreement.str() + "\n");
            !status && given.verbose)
            speaker.say("not kept for later steps: " + status.error().message);
    // The agents have been told to end. srun needs a moment to collect them.
    crew.finish(std::max(
        started + std::chrono::milliseconds(static_cast<long>(start->assignment.budget_s * 1000)),
        Clock::now() + std::chrono::milliseconds(200)));
    return outcome.usable ? kExitOk : kExitFailure;
}

}  // namespace

Command addMeasure(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand(
        "measure", "Measure the network between this job's nodes; prints the profile.");
    auto given = std::make_shared<MeasureOptions>();
    subcommand->add_option("--slurm-job", given->job,
                           "Slurm job (default: the allocation this runs in)");
    subcommand->add_option("--slurm-step", given->step,
                           "Slurm step whose nodes are measured; messages go to srun");
    subcommand->add_option("--nodes", given->nodes, "Nodes of the step")
        ->check(CLI::NonNegativeNumber);
    subcommand->add_option("--tasks", given->tasks, "Tasks of the step")
        ->check(CLI::NonNegativeNumber);
    subcommand->add_flag("--refresh", given->refresh,
                         "Measure anew, whatever was measured before in this allocation");
    subcommand
        ->add_option("--budget", given->budget_s,
                     "Seconds for all of it (default: the option budget)")
        ->check(CLI::Range(0.1, 600.0));
    auto* local =
        subcommand
            ->add_option("--local", given->local, "Measure N agents on this machine over loopback")
            ->check(CLI::Range(2, 1024));
    auto* hosts =
        subcommand
            ->add_option("--hosts", given->hosts, "Without Slurm: host names, such as gpu[01-04]")
            ->excludes(local);
    subcommand
        ->add_option("--launch", given->launch,
                     "How to start a command on a host, such as 'ssh {host}'")
        ->needs(hosts);
    subcommand
        ->add_option("--remote-program", given->remote_program,
                     "Path of rdma-tune on the hosts (default: as here)")
        ->needs(hosts);
    subcommand->add_flag("--tcp", given->tcp, "TCP even where there is RDMA");
    subcommand->add_flag("--collectives", given->collectives,
                         "Also time a real ring and a real tree allreduce");
    subcommand
        ->add_option("--sizes", given->sizes,
                     "Sizes of the allreduces in bytes, separated by commas")
        ->delimiter(',')
        ->check(CLI::PositiveNumber);
    subcommand->add_flag("--json", given->json, "Every figure as JSON instead of the profile");
    subcommand->add_flag("-v,--verbose", given->verbose, "A summary on standard error");
    return [given] { return run(*given); };
}

}  // namespace rdmatune::cli
