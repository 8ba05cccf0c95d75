// `rdma-tune plan`: which rank would get which GPU, HCA and cores, and why.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tuner/binding/plan.hpp"
#include "tuner/cli/command.hpp"
#include "tuner/cli/site.hpp"

namespace rdmatune::cli {
namespace {

struct PlanOptions {
    std::string topology;
    std::string root;
    std::string config;
    std::string gpus;
    bool gpus_given = false;
    std::string cpus;
    std::string agreed;
    int tasks = 0;  ///< 0: one for each GPU
    std::vector<std::string> hca_include;
    std::vector<std::string> hca_exclude;
    bool json = false;
};

std::string planText(const Plan& plan, const Node& node) {
    std::string out = planToTable(plan, node) + "\n";
    out += "\nwhy:\n";
    for (const RankPlan& rank : plan.ranks)
        out += "  rank " + std::to_string(rank.local_rank) + ": " + rank.reason + "\n";
    if (!plan.excluded.empty()) out += "\nHCAs that are left out:\n";
    for (const ExcludedHca& hca : plan.excluded)
        out += "  " + hca.hca + " (" + hca.code + "): " + hca.reason + "\n";
    if (!plan.notes.empty()) out += "\nnotes:\n";
    for (const std::string& note : plan.notes) out += "  " + note + "\n";
    if (!plan.env.empty()) out += "\nenvironment of every rank:\n";
    for (const auto& [name, value] : plan.env) out += "  " + name + "=" + value + "\n";
    return out;
}

Result<Node> readNode(const PlanOptions& given, const Options& site) {
    if (!given.topology.empty()) return readTopologyFile(given.topology);
    if (given.root.empty()) return nodeHere(site, {});
    return readThisMachine({given.root + "/sys", given.root + "/proc", given.root + "/dev"});
}

Result<PlanRequest> makeRequest(const PlanOptions& given, const Options& site, const Node& node) {
    PlanRequest request = requestFrom(site, {});
    const auto include = commaList(given.hca_include);
    const auto exclude = commaList(given.hca_exclude);
    if (!include.empty()) request.hca_include = include;
    if (!exclude.empty()) request.hca_exclude = exclude;
    if (given.gpus_given) {
        auto gpus = gpusNamed(node, given.gpus);
        if (!gpus) return gpus.error();
        request.gpus = std::move(*gpus);
    }
    if (!given.cpus.empty()) {
        request.cpus = CpuSet::parse(given.cpus);
        if (!request.cpus)
            return Error{"--cpus " + given.cpus + ": expected a list of CPUs such as 0-11,24"};
    }
    if (!given.agreed.empty()) {
        request.agreed = Agreement::parse(given.agreed);
        if (!request.agreed)
            return Error{
                "--agreed: expected the line that `rdma-tune measure` prints "
                "(\"rt-agreed/1 rails=...\")"};
    }
    const std::size_t gpus = request.gpus ? request.gpus->size() : node.gpus.size();
    request.local_tasks = given.tasks > 0 ? given.tasks : std::max(1, static_cast<int>(gpus));
    return request;
}

int runPlan(const PlanOptions& given) {
    // A saved topology is of another machine: this one's configuration does not apply to it.
    Options site;
    if (given.topology.empty() || !given.config.empty()) {
        auto read =
            siteOptions(given.topology.empty() ? ownEnvironment() : Environment{}, given.config);
        if (!read) return fail(read.error().message);
        site = std::move(*read);
    }
    const auto node = readNode(given, site);
    if (!node) return fail(node.error().message);
    const auto request = makeRequest(given, site, *node);
    if (!request) return fail(request.error().message);
    auto plan = makePlan(*node, *request);
    if (!plan) return fail(plan.error().message);
    // What a saved topology does not tell belongs to its plan; a flat machine's note is there.
    if (!given.topology.empty() && !node->flat)
        plan->notes.insert(plan->notes.begin(), node->notes.begin(), node->notes.end());
    const std::string text =
        given.json ? planToJson(*plan, *node, 2) + "\n" : planText(*plan, *node);
    return printOut(text) ? kExitOk : fail("plan: standard output cannot be written");
}

}  // namespace

Command addPlan(CLI::App& app, CLI::App*& subcommand) {
    subcommand =
        app.add_subcommand("plan", "Show which rank would get which GPU, HCA and cores, and why");
    auto given = std::make_shared<PlanOptions>();
    CLI::Option* saved =
        subcommand
            ->add_option("--topology", given->topology,
                         "A saved machine instead of this one: hwloc XML, NCCL topology XML, the "
                         "output of `nvidia-smi topo -m`, or the JSON of `rdma-tune topo`")
            ->type_name("FILE");
    subcommand
        ->add_option("--tasks", given->tasks, "Tasks on this node; by default one for each GPU")
        ->type_name("N")
        ->check(CLI::Range(1, 65536));
    CLI::Option* gpus =
        subcommand
            ->add_option("--gpus", given->gpus,
                         "The GPUs of the step: numbers in PCI order, ranges, PCI addresses, UUIDs")
            ->type_name("LIST");
    subcommand->add_option("--cpus", given->cpus, "The CPUs of the step, such as 0-15,32-47")
        ->type_name("LIST");
    subcommand
        ->add_option("--hca-include", given->hca_include,
                     "Only these HCAs: names, name:port or PCI addresses, all exact")
        ->type_name("LIST");
    subcommand->add_option("--hca-exclude", given->hca_exclude, "Never these HCAs")
        ->type_name("LIST");
    subcommand
        ->add_option("--agreed", given->agreed,
                     "What the job's nodes agreed on: the second line of `rdma-tune measure`")
        ->type_name("LINE");
    subcommand->add_option("--config", given->config, "Instead of /etc/rdma-tune/rdma-tune.conf")
        ->type_name("FILE");
    subcommand
        ->add_option("--sysfs-root", given->root,
                     "Read DIR/sys, DIR/proc and DIR/dev instead of /sys, /proc and /dev")
        ->type_name("DIR")
        ->check(CLI::ExistingDirectory)
        ->excludes(saved);
    subcommand->add_flag("--json", given->json, "Print the plan as JSON");
    return [given, gpus] {
        given->gpus_given = gpus->count() > 0;
        return runPlan(*given);
    };
}

}  // namespace rdmatune::cli
