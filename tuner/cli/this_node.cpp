#include "tuner/cli/this_node.hpp"

#include "tuner/base/text.hpp"
#include "tuner/profile/profile.hpp"
#include "tuner/task/look.hpp"
#include "tuner/task/nccl_conf.hpp"
#include "tuner/task/step_gpus.hpp"

namespace rdmatune::cli {
namespace {

/// The profile's text, once it is known to be sound.
void takeProfile(const Environment& env, TaskFacts& facts) {
    const std::string* text = lookUp(env, "RDMA_TUNE_PROFILE");
    if (text != nullptr && text->empty()) {  // a manifest's empty entry means none
        facts.env.erase("RDMA_TUNE_PROFILE");
        text = nullptr;
    }
    if (text == nullptr) text = lookUp(env, "SLURM_RDMA_TUNE_PROFILE");
    if (text == nullptr || text->empty()) {
        if (const std::string* why = lookUp(env, "SLURM_RDMA_TUNE_UNTUNED"))
            facts.untuned_reason = *why;
        return;
    }
    FabricProfile profile;
    const ProfileError error = parseProfile(text->c_str(), profile);
    if (error == ProfileError::None)
        facts.profile = text->substr(0, text->find('\n'));
    else
        facts.untuned_reason = std::string("the profile is damaged: ") + describe(error);
}

}  // namespace

TaskFacts lookAtTask(const Node& node, const Environment& env, const LocalPlace& place,
                     const std::string& tuner, const SystemRoots& roots) {
    TaskFacts facts;
    facts.local_rank = place.local_rank;
    facts.local_tasks = place.local_tasks;
    const std::string* number = lookUp(env, "SLURM_NODEID");
    facts.first_node = number == nullptr || *number == "0";
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
