#include "tuner/task/task_warnings.hpp"

#include <algorithm>

#include "tuner/base/text.hpp"
#include "tuner/binding/hca_spec.hpp"

namespace rdmatune {
namespace {

std::string bytesText(std::uint64_t bytes) {
    if (bytes >= 1ULL << 20) return std::to_string(bytes >> 20) + " MiB";
    return std::to_string(bytes >> 10) + " KiB";
}

/// The device cgroup of a task bars it from the GPUs of its neighbours.
void warnIsolated(const Plan& plan, const GpuView& view, const TaskFacts& facts,
                  std::vector<std::string>& out) {
    if (!view.isolated || facts.local_tasks < 2) return;
    out.push_back(
        "each task can open " + std::to_string(view.enumerable.size()) + " of the step's " +
        std::to_string(plan.pairs.size()) +
        " GPUs, so the ranks of a node cannot reach each other's GPU memory (NVLink, CUDA IPC) "
        "and NCCL may fail; ask for the GPUs with --gpus-per-node, or add "
        "--gres-flags=allow-task-sharing");
    const std::string* restrict_dev = lookUp(facts.env, "ENROOT_RESTRICT_DEV");
    if (restrict_dev != nullptr &&
        (parseBool(*restrict_dev).value_or(false) || *restrict_dev == "y"))
        out.emplace_back(
            "ENROOT_RESTRICT_DEV is on and tasks have GPUs of their own: a container may see no "
            "GPU at all; use ENROOT_RESTRICT_DEV=n or --gres");
}

/// "srun --export=ALL,NCCL_IB_HCA=a:1,b:1" arrives as a:1, because srun splits at every comma.
bool cutByExport(const Environment& env, const std::string& name) {
    const std::string* exported = lookUp(env, "SLURM_EXPORT_ENV");
    if (exported == nullptr) return false;
    const auto parts = split(*exported, ',');
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
        if (parts[i].starts_with(name + "=") && parts[i + 1].find(':') != std::string_view::npos &&
            parts[i + 1].find('=') == std::string_view::npos)
            return true;
    return false;
}

void warnHcaList(const Node& node, const Plan& plan, const TaskFacts& facts,
                 std::vector<std::string>& out) {
    const std::string* value = lookUp(facts.env, "NCCL_IB_HCA");
    const bool in_environment = value != nullptr;
    if (!in_environment) value = lookUp(facts.nccl_conf, "NCCL_IB_HCA");
    if (value == nullptr) return;
    for (const auto& [name, planned] : plan.env)
        if (name == "NCCL_IB_HCA" && planned == *value) return;
    const HcaSpec spec = HcaSpec::parse(*value);
    auto lint = spec.lint(node);
    out.insert(out.end(), lint.begin(), lint.end());
    const auto selected = spec.select(node);
    for (const int hca : selected)
        for (const ExcludedHca& excluded : plan.excluded)
            if (excluded.hca == node.hcas[hca].label())
                out.push_back("NCCL_IB_HCA takes " + excluded.hca +
                              ", which the plan leaves out (" + excluded.code +
                              "): " + excluded.reason);
    if (in_environment && cutByExport(facts.env, "NCCL_IB_HCA"))
        out.push_back("NCCL_IB_HCA arrived as " + *value +
                      ": srun --export splits its argument at every comma; export the variable "
                      "before srun instead, or leave it to rdma-tune");
    else if (selected.size() == 1 && plan.hcas.size() > 1)
        out.push_back("NCCL_IB_HCA=" + *value + " leaves one HCA of the " +
                      std::to_string(plan.hcas.size()) +
                      " that are near the GPUs; if that is not meant, unset it (srun --export cuts "
                      "lists at commas)");
}

void warnMemlock(const Plan& plan, const TaskFacts& facts, std::vector<std::string>& out) {
    if (!facts.memlock || *facts.memlock >= kMemlockWanted || plan.hcas.empty()) return;
    out.push_back("this task may lock " + bytesText(*facts.memlock) +
                  " of memory (ulimit -l), RDMA needs about " + bytesText(kMemlockWanted) +
                  " or \"unlimited\": registration will fail; the admin sets "
                  "LimitMEMLOCK=infinity for slurmd and PropagateResourceLimitsExcept=MEMLOCK");
}

/// NCCL takes a value with a slash only when it is an absolute path; it makes
/// libnccl-tuner-VALUE.so of the rest.
void warnTunerPath(const TaskFacts& facts, std::vector<std::string>& out) {
    const std::string* value = lookUp(facts.env, "NCCL_TUNER_PLUGIN");
    if (value == nullptr || value->find('/') == std::string::npos || value->starts_with('/'))
        return;
    out.push_back("NCCL_TUNER_PLUGIN=" + *value +
                  " is a relative path, which NCCL rewrites to libnccl-tuner-" + *value +
                  ".so; give an absolute path");
}

}  // namespace

void warnAboutTask(const Node& node, const Plan& plan, const GpuView& view, const TaskFacts& facts,
                   TaskOutcome& out) {
    // They come from the job's environment and the site's limits, alike in all tasks: said once.
    if (facts.local_rank == 0 && facts.first_node) {
        warnIsolated(plan, view, facts, out.warnings);
        warnHcaList(node, plan, facts, out.warnings);
        warnMemlock(plan, facts, out.warnings);
        warnTunerPath(facts, out.warnings);
    }
    if (!facts.net_plugin.empty() && lookUp(facts.env, "NCCL_NET_PLUGIN") == nullptr &&
        lookUp(facts.nccl_conf, "NCCL_NET_PLUGIN") == nullptr)
        out.settings.push_back({"NCCL_NET_PLUGIN", "", Setting::Action::Keep,
                                "unset, so NCCL loads " + facts.net_plugin +
                                    " from LD_LIBRARY_PATH; NCCL_NET_PLUGIN=none prevents that"});
}

}  // namespace rdmatune
