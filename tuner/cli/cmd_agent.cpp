#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tuner/base/text.hpp"
#include "tuner/cli/command.hpp"
#include "tuner/config/options.hpp"
#include "tuner/fabric/agent.hpp"
#include "tuner/fabric/agree.hpp"
#include "tuner/fabric/node_reader.hpp"

namespace rdmatune::cli {
namespace {

struct AgentOptions {
    int number = -1;
    std::string host;
    double budget_s = 5;
    bool loopback = false;
};

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

/// Measuring for srun's plugin on a node that has no such plugin itself: Slurm ignores the option
/// there without a word, so this is where the user can be told.
bool pluginMissing() {
    return !variable("RDMA_TUNE_EXPECT_PLUGIN").empty() && variable("RDMA_TUNE_PLUGIN").empty();
}

/// "spine.leaf3.gpu07" -> "leaf3"; a cluster without a topology gives the node alone.
std::string leafSwitch() {
    const std::string address = variable("SLURM_TOPOLOGY_ADDR");
    const auto parts = split(address, '.');
    return parts.size() < 2 ? std::string() : std::string(parts[parts.size() - 2]);
}

int run(const AgentOptions& given) {
    // The controller going away shows as a failed write, not as a signal.
    std::signal(SIGPIPE, SIG_IGN);
    // Whatever hangs in here, a driver for example, an agent does not outlive its measurement.
    constexpr double kSlack = 3;
    alarm(static_cast<unsigned>(given.budget_s + kSlack) + 1);

    fabric::AgentSetup setup;
    setup.number = given.number;
    if (setup.number < 0) {
        const auto number = parseInt<int>(variable("SLURM_PROCID"));
        if (!number || *number < 0)
            return fail("agent: needs --number, or SLURM_PROCID in its environment");
        setup.number = *number;
    }
    setup.host = given.host;
    if (setup.host.empty()) setup.host = variable("SLURMD_NODENAME");
    if (setup.host.empty()) {
        char name[256] = "";
        gethostname(name, sizeof name - 1);
        setup.host = name;
        if (given.loopback) setup.host += "#" + std::to_string(setup.number);
    }
    setup.leaf = leafSwitch();
    setup.loopback = given.loopback;
    setup.lifetime = std::chrono::milliseconds(static_cast<long>((given.budget_s + kSlack) * 1000));

    const Result<Options> options = loadOptions();
    fabric::NodeReader reader(options ? *options : Options{}, setup.host);
    setup.read_facts = [&]() -> fabric::NodeFacts {
        if (!options) return {0, {}, options.error().message};
        // A third of the budget: introductions are waited for during half of it.
        const double limit_s = std::min(options->node_timeout_s, given.budget_s / 3);
        fabric::NodeFacts facts =
            reader.read(std::chrono::milliseconds(static_cast<long>(limit_s * 1000)));
        if (pluginMissing()) facts.error = fabric::kNoPlugin;
        return facts;
    };
    setup.make_transport = [&](const fabric::TransportChoice& choice, const fabric::NodeFacts&,
                               std::vector<std::string>& notes) {
        return reader.transport(choice, notes);
    };
    const Status status = fabric::runAgent(setup);
    return status ? kExitOk : fail("agent on " + setup.host + ": " + status.error().message);
}

}  // namespace

Command addAgent(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("agent", "One node's side of measure; started by it.");
    subcommand->group("");  // not in the help
    auto options = std::make_shared<AgentOptions>();
    subcommand->add_option("--number", options->number,
                           "Number among the agents (default: SLURM_PROCID)");
    subcommand->add_option("--host", options->host, "Name of this node in messages");
    subcommand->add_option("--budget", options->budget_s, "Seconds for the whole measurement")
        ->check(CLI::Range(0.1, 600.0));
    subcommand->add_flag("--loopback", options->loopback, "All agents are on this machine");
    return [options] { return run(*options); };
}

}  // namespace rdmatune::cli
