// `rdma-tune node`: what user_init runs once on each node of a step, as the user. Prints the node
// report for `rdma-tune task`; tells the user on standard error.
#include <cstdio>
#include <memory>
#include <string>

#include "tuner/base/text.hpp"
#include "tuner/cli/command.hpp"
#include "tuner/cli/this_node.hpp"

namespace rdmatune::cli {
namespace {

struct NodeOptions {
    int tasks = 1;
    int node_id = 0;
    bool verbose = false;
    SystemRoots roots;
};

void tell(const std::string& line) {
    std::fprintf(stderr, "%s\n", oneLine(line).c_str());
}

void tellPlan(const NodeReport& report, bool verbose) {
    const std::string& host = report.node.hostname;
    const std::string table = planToTable(report.plan, report.node);
    for (const auto line : split(table, '\n'))
        tell((host.empty() ? "" : host + ": ") + std::string(line));
    for (const std::string& note : report.plan.notes) tell(note);
    if (!report.plan.pairs.empty() && !report.plan.hcas.empty())
        for (const Finding& finding : report.diagnosis.findings)
            if (finding.severity == Severity::Error)
                tell(finding.code + ": " + finding.what + " (rdma-tune doctor says more)");
    if (!verbose) return;
    for (const RankPlan& rank : report.plan.ranks)
        tell("rank " + std::to_string(rank.local_rank) + ": " + rank.reason);
    for (const ExcludedHca& hca : report.plan.excluded)
        tell(hca.hca + " is left out (" + hca.code + "): " + hca.reason);
}

int runNode(const NodeOptions& given) {
    const Environment env = ownEnvironment();
    const auto options = siteOptions(env);
    if (!options) return fail(options.error().message);
    const auto report = planThisNode(*options, env, given.tasks, given.roots, false);
    if (!report) return fail(report.error().message);
    // The nodes of a job are usually alike: the first one speaks for all.
    if (given.node_id == 0) tellPlan(*report, given.verbose || options->verbose);
    return printOut(reportToJson(*report) + "\n") ? kExitOk
                                                  : fail("node: standard output cannot be written");
}

}  // namespace

Command addNode(CLI::App& app, CLI::App*& subcommand) {
    subcommand =
        app.add_subcommand("node", "Read and plan this node for a step (run by the plugin)");
    subcommand->group("");
    auto given = std::make_shared<NodeOptions>();
    subcommand->add_option("--tasks", given->tasks, "Tasks of the step on this node")
        ->type_name("N")
        ->check(CLI::Range(1, 65536))
        ->required();
    subcommand->add_option("--node-id", given->node_id, "Number of this node in the step")
        ->type_name("K")
        ->check(CLI::NonNegativeNumber);
    subcommand->add_option("--dev-root", given->roots.dev, "Device files are here instead of /dev")
        ->type_name("DIR");
    subcommand->add_flag("--verbose", given->verbose, "Say why");
    return [given] { return runNode(*given); };
}

}  // namespace rdmatune::cli
