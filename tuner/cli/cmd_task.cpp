// `rdma-tune task`: what task_init runs for each task, as its child. Reads the task's environment
// and the node report; prints what the plugin is to set.
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tuner/cli/command.hpp"
#include "tuner/cli/this_node.hpp"

namespace rdmatune::cli {
namespace {

struct TaskOptions {
    LocalPlace place;
    bool cpu_bind_by_user = false;
    bool verbose = false;
    SystemRoots roots;
};

std::string readAll(std::FILE* file) {
    std::string out;
    std::vector<char> block(1 << 16);
    for (std::size_t n = 0; (n = std::fread(block.data(), 1, block.size(), file)) > 0;)
        out.append(block.data(), n);
    return out;
}

Environment toEnvironment(const std::vector<std::string>& entries) {
    Environment out;
    for (const std::string& entry : entries)
        if (const auto equals = entry.find('='); equals != std::string::npos && equals > 0)
            out.try_emplace(entry.substr(0, equals), entry.substr(equals + 1));
    return out;
}

/// Rank 0 of the first node lists everything; its neighbours what is theirs alone.
void say(const TaskOptions& given, const TaskFacts& facts, const TaskOutcome& outcome,
         const std::string& host, std::string& out) {
    const std::string who = host + (host.empty() ? "" : ": ");
    for (const std::string& warning : outcome.warnings)
        out += "say " + oneLine(who + warning) + "\n";
    if (!given.verbose || !facts.first_node) return;
    const std::string rank = "rank " + std::to_string(given.place.local_rank) + ": ";
    if (given.place.local_rank == 0 && facts.profile.empty() && !facts.untuned_reason.empty())
        out += "say " + oneLine(who + "no profile, so NCCL is not tuned: " + facts.untuned_reason) +
               "\n";
    for (const std::string& line : explainOutcome(outcome)) {
        const bool own = line.find("CUDA_VISIBLE_DEVICES=") != std::string::npos ||
                         line.find("UCX_NET_DEVICES=") != std::string::npos ||
                         line.find("CPUs ") != std::string::npos;
        if (given.place.local_rank == 0 || own) out += "say " + who + rank + line + "\n";
    }
}

int runTask(const TaskOptions& given) {
    const auto input = parseTaskInput(readAll(stdin));
    if (!input) return fail("task: " + input.error().message);
    const auto report = reportFromJson(input->report);
    if (!report) return fail("task: " + report.error().message);
    const Environment env = toEnvironment(input->env);
    TaskFacts facts = lookAtTask(report->node, env, given.place, report->tuner, given.roots);
    facts.cpu_bind_by_user = given.cpu_bind_by_user;
    const auto outcome = outcomeFor(*report, facts);
    if (!outcome) return fail("task: " + outcome.error().message);
    std::string out;
    for (const Setting& setting : outcome->settings) {
        if (setting.action == Setting::Action::Set)
            out += "set " + setting.name + "=" + oneLine(setting.value) + "\n";
        if (setting.action == Setting::Action::Unset) out += "unset " + setting.name + "\n";
    }
    if (!outcome->cpus.empty()) out += "cpus " + outcome->cpus.str() + "\n";
    say(given, facts, *outcome, report->node.hostname, out);
    return printOut(out + "end\n") ? kExitOk : fail("task: standard output cannot be written");
}

}  // namespace

Command addTask(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("task", "Prepare one task of a step (run by the plugin)");
    subcommand->group("");
    auto given = std::make_shared<TaskOptions>();
    given->place.launcher = "Slurm";
    subcommand
        ->add_option("--local-rank", given->place.local_rank, "The task's number on this node")
        ->type_name("L")
        ->check(CLI::NonNegativeNumber)
        ->required();
    subcommand->add_option("--local-tasks", given->place.local_tasks, "Tasks on this node")
        ->type_name("N")
        ->check(CLI::Range(1, 65536))
        ->required();
    subcommand->add_flag("--cpu-bind-by-user", given->cpu_bind_by_user,
                         "The user bound the CPUs: leave them alone");
    subcommand->add_option("--dev-root", given->roots.dev, "Device files are here instead of /dev")
        ->type_name("DIR");
    subcommand->add_flag("--verbose", given->verbose, "Say what was set, what was left, and why");
    return [given] { return runTask(*given); };
}

}  // namespace rdmatune::cli
