// Apart from this_node.cpp, so that rdma-tune-task, which only prepares a task, needs no hwloc and
// no verbs library.
#include <filesystem>
#include <optional>

#include "tuner/cli/this_node.hpp"
#include "tuner/gpudirect/gdr_judge.hpp"
#include "tuner/task/look.hpp"
#include "tuner/task/step_gpus.hpp"

namespace rdmatune::cli {
namespace {

/// Whether a saved topology is of this very machine: one of its devices is here. The site's file
/// for a virtual machine is; a test's file for another cluster is not, and nothing seen here says
/// anything about it.
bool isThisMachine(const Node& node, const SystemRoots& roots) {
    if (node.source == TopologySource::Live) return true;
    const auto here = [&](const std::optional<PciAddress>& pci) {
        std::error_code failed;
        return pci && std::filesystem::exists(roots.sys + "/bus/pci/devices/" + pci->str(), failed);
    };
    for (const Gpu& gpu : node.gpus)
        if (here(gpu.pci)) return true;
    for (const Hca& hca : node.hcas)
        if (here(hca.pci)) return true;
    return false;
}

}  // namespace

Diagnosis diagnoseHere(const Node& node, const SystemRoots& roots) {
    return isThisMachine(node, roots) ? diagnose(node, roots) : judgeGdr(node, GdrFacts{});
}

Result<NodeReport> planThisNode(const Options& options, const Environment& env, int local_tasks,
                                const SystemRoots& roots, bool one_of_slurms_tasks) {
    NodeReport out;
    auto node = nodeHere(options, roots);
    if (!node) return node.error();
    out.node = std::move(*node);
    const auto openable = openableGpus(out.node, roots.dev);
    out.request = requestFrom(options, env);
    out.request.local_tasks = local_tasks;
    const bool too_few = openable && openable->size() < static_cast<std::size_t>(local_tasks);
    if (!one_of_slurms_tasks || !too_few) out.request.gpus = stepGpus(out.node, env, openable);
    out.request.cpus = cpusetLimit();
    // A saved topology may be of a machine with other CPUs than this one: then it knows better.
    if (!out.node.cpus.empty() && (*out.request.cpus & out.node.cpus).empty())
        out.request.cpus.reset();
    auto plan = makePlan(out.node, out.request);
    if (!plan) return plan.error();
    out.plan = std::move(*plan);
    out.diagnosis = diagnoseHere(out.node, roots);
    out.tuner = options.tuner;
    return out;
}

}  // namespace rdmatune::cli
