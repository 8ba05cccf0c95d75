#include "tuner/fabric/launch.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "tuner/base/text.hpp"
#include "tuner/fabric/hostlist.hpp"

namespace rdmatune::fabric {
namespace {

constexpr const char* kNested = "SLURM_RDMA_TUNE_NESTED=1";

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

std::vector<std::string> agentArguments(const std::string& program, double budget_s) {
    return {program, "agent", "--budget", number(budget_s)};
}

/// "gpu01,gpu02" is what every Slurm understands; only very long lists are worth folding, and those
/// come from Slurm folded already.
std::string nodeList(const std::vector<std::string>& hosts) {
    return join(hosts, ",");
}

}  // namespace

std::optional<std::string> valueOf(const Variables& variables, std::string_view name) {
    for (const std::string& variable : variables)
        if (variable.size() > name.size() && variable.starts_with(name) &&
            variable[name.size()] == '=')
            return variable.substr(name.size() + 1);
    return std::nullopt;
}

Variables agentVariables(const Variables& own) {
    constexpr std::array kKept = {
        "PATH",         "HOME",          "USER",         "LOGNAME",         "SHELL",
        "LANG",         "TMPDIR",        "TZ",           "SLURM_CONF",      "LD_LIBRARY_PATH",
        "SLURM_JWT",    "KRB5CCNAME",    "LC_ALL",       "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK",
        "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "IBV_FORK_SAFE",   "RDMAV_FORK_SAFE"};
    Variables out;
    for (const std::string& variable : own) {
        const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
        const bool kept = std::find(kKept.begin(), kKept.end(), name) != kKept.end();
        if (kept || name.starts_with("RDMA_TUNE_")) out.push_back(variable);
    }
    out.emplace_back(kNested);
    return out;
}

Result<std::string> outputOf(const Invocation& command, Deadline deadline) {
    Crew crew;
    if (Status status = crew.start(command); !status) return status.error();
    std::string text = crew.drain(deadline);
    const bool ended = crew.gone();
    crew.finish(Clock::now());
    if (!ended) return Error{command.arguments.front() + " did not answer in time"};
    if (text.empty()) {
        const auto& said = crew.complaints();
        return Error{command.arguments.front() + ": " +
                     (said.empty() ? std::string("no output") : said.back())};
    }
    return text;
}

Result<std::vector<std::string>> stepHosts(const SlurmStep& step, const Variables& own,
                                           Deadline deadline) {
    const auto fitting =
        [&](const std::optional<std::string>& list) -> std::optional<std::vector<std::string>> {
        if (!list || list->empty()) return std::nullopt;
        Result<std::vector<std::string>> hosts = expandHosts(*list);
        if (!hosts || (step.nodes > 0 && static_cast<int>(hosts->size()) != step.nodes))
            return std::nullopt;
        return std::move(*hosts);
    };
    if (auto hosts = fitting(valueOf(own, "SLURM_STEP_NODELIST"))) return std::move(*hosts);
    std::string why;
    if (!step.step.empty()) {
        const Result<std::string> shown =
            outputOf({{"scontrol", "--oneliner", "show", "step", step.job + "." + step.step},
                      agentVariables(own)},
                     deadline);
        if (!shown) why = shown.error().message;
        const std::string text = shown ? *shown : std::string();
        for (const std::string_view word : split(text, ' ')) {
            const std::string_view field = trim(word);
            if (!field.starts_with("NodeList=")) continue;
            if (auto hosts = fitting(std::string(field.substr(9)))) return std::move(*hosts);
        }
    }
    for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"})
        if (auto hosts = fitting(valueOf(own, name))) return std::move(*hosts);
    return Error{"the nodes of step " + step.job + "." + step.step + " are not known" +
                 (why.empty() ? "" : ": " + why)};
}

std::optional<std::int64_t> jobStart(const std::string& job, const Variables& own,
                                     Deadline deadline) {
    Variables variables = agentVariables(own);
    variables.emplace_back("SLURM_TIME_FORMAT=%s");
    const Result<std::string> shown =
        outputOf({{"scontrol", "--oneliner", "show", "job", job}, variables}, deadline);
    if (!shown) return std::nullopt;
    for (const std::string_view word : split(*shown, ' '))
        if (word.starts_with("StartTime=")) return parseInt<std::int64_t>(word.substr(10));
    return std::nullopt;
}

Invocation srunCommand(const SlurmStep& step, const std::vector<std::string>& hosts,
                       const std::string& program, double budget_s, const Variables& own) {
    const std::string count = std::to_string(hosts.size());
    Invocation command;
    command.arguments = {
        "srun", "--overlap", "--jobid=" + step.job, "-N", count, "-n", count, "--ntasks-per-node=1",
        "--nodelist=" + nodeList(hosts), "--distribution=block",
        // Nothing of a user's or site's settings for ordinary steps may stop an agent.
        "--mpi=none", "--cpu-bind=none", "--kill-on-bad-exit=0", "--wait=0", "--chdir=/",
        "--prolog=none", "--epilog=none", "--job-name=rdma-tune", "--input=all", "--export=ALL"};
    for (std::string& word : agentArguments(program, budget_s))
        command.arguments.push_back(std::move(word));
    command.environment = agentVariables(own);
    return command;
}

std::vector<Invocation> localCommands(int count, const std::string& program, double budget_s,
                                      const Variables& own) {
    std::vector<Invocation> commands;
    for (int agent = 0; agent < count; ++agent) {
        Invocation command;
        command.arguments = agentArguments(program, budget_s);
        command.arguments.insert(command.arguments.end(),
                                 {"--number", std::to_string(agent), "--loopback"});
        command.environment = agentVariables(own);
        commands.push_back(std::move(command));
    }
    return commands;
}

Result<std::vector<Invocation>> templateCommands(const std::string& launch_template,
                                                 const std::vector<std::string>& hosts,
                                                 const std::string& program, double budget_s,
                                                 const Variables& own) {
    const Result<std::vector<std::string>> words = shellWords(launch_template);
    if (!words) return words.error();
    if (words->empty()) return Error{"--launch is empty; give a command such as 'ssh {host}'"};
    std::vector<Invocation> commands;
    for (std::size_t agent = 0; agent < hosts.size(); ++agent) {
        std::vector<std::string> agent_words = agentArguments(program, budget_s);
        agent_words.insert(agent_words.end(),
                           {"--number", std::to_string(agent), "--host", hosts[agent]});
        Invocation command;
        bool placed = false;
        for (std::string word : *words) {
            if (word == "{agent}") {
                command.arguments.insert(command.arguments.end(), agent_words.begin(),
                                         agent_words.end());
                placed = true;
                continue;
            }
            for (auto at = word.find("{host}"); at != std::string::npos;
                 at = word.find("{host}", at + hosts[agent].size()))
                word.replace(at, 6, hosts[agent]);
            command.arguments.push_back(std::move(word));
        }
        if (!placed)
            command.arguments.insert(command.arguments.end(), agent_words.begin(),
                                     agent_words.end());
        command.environment = agentVariables(own);
        commands.push_back(std::move(command));
    }
    return commands;
}

}  // namespace rdmatune::fabric
