#include "tuner/cli/this_node.hpp"

#include <filesystem>

#include "tuner/base/text.hpp"
#include "tuner/gpudirect/gdr_judge.hpp"
#include "tuner/profile/profile.hpp"
#include "tuner/task/look.hpp"
#include "tuner/task/nccl_conf.hpp"
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

/// The profile's text, once it is known to be sound.
void takeProfile(const Environment& env, TaskFacts& facts) {
    const std::string* text = lookUp(env, "RDMA_TUNE_PROFILE");
    if (text == nullptr) text = lookUp(env, "SLURM_RDMA_TUNE_PROFILE");
    if (text == nullptr) {
        if (const std::string* why = lookUp(env, "SLURM_RDMA_TUNE_UNTUNED"))
            facts.untuned_reason = *why;
        return;
    }
    FabricProfile profile;
    const ProfileError error = parseProfile(text->c_str(), profile);
    if (error == ProfileError::None)
        facts.profile = *text;
    else
        facts.untuned_reason = std::string("the profile is damaged: ") + describe(error);
}

}  // namespace

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
    out.diagnosis =
        isThisMachine(out.node, roots) ? diagnose(out.node, roots) : judgeGdr(out.node, GdrFacts{});
    out.tuner = options.tuner;
    return out;
}

TaskFacts lookAtTask(const Node& node, const Environment& env, const LocalPlace& place,
                     const std::string& tuner, const SystemRoots& roots) {
    TaskFacts facts;
    facts.local_rank = place.local_rank;
    facts.local_tasks = place.local_tasks;
    facts.openable_gpus = openableGpus(node, roots.dev);
    facts.env = env;
    auto conf = readNcclConf(env);
    facts.nccl_conf = std::move(conf.values);
    facts.nccl_conf_origin = join(conf.files, " and ");
    facts.affinity = currentAffinity();
    facts.permitted = permittedCpus(facts.affinity, cpusetLimit(), onlineCpus(), env);
    facts.tuner_path = tuner;
    facts.tuner_readable = isReadableFile(tuner);
    facts.memlock = memlockLimit();
    facts.net_plugin = netPluginOnPath(env);
    takeProfile(env, facts);
    return facts;
}

Result<TaskOutcome> outcomeFor(const NodeReport& report, const TaskFacts& facts) {
    const auto plan = fitPlan(report.node, report.request, report.plan, facts);
    if (!plan) return plan.error();
    return prepareTask(report.node, *plan, report.diagnosis, facts);
}

std::string oneLine(std::string text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    return text;
}

std::vector<std::string> explainOutcome(const TaskOutcome& outcome) {
    std::vector<std::string> out;
    for (const Setting& setting : outcome.settings) {
        const std::string what = setting.name + "=" + setting.value;
        switch (setting.action) {
            case Setting::Action::Set:
                out.push_back("set " + what + " (" + setting.reason + ")");
                break;
            case Setting::Action::Keep:
                out.push_back("left " + what + " (" + setting.reason + ")");
                break;
            case Setting::Action::Unset:
                out.push_back("unset " + setting.name + " (" + setting.reason + ")");
                break;
        }
    }
    if (!outcome.cpus.empty())
        out.push_back("CPUs " + outcome.cpus.str() + " (" + outcome.cpus_reason + ")");
    else if (!outcome.cpus_reason.empty())
        out.push_back("left the CPUs alone (" + outcome.cpus_reason + ")");
    for (std::string& line : out) line = oneLine(std::move(line));
    return out;
}

}  // namespace rdmatune::cli
