#include <algorithm>
#include <set>

#include "tuner/base/text.hpp"
#include "tuner/task/gpu_view.hpp"
#include "tuner/task/own_gpus.hpp"
#include "tuner/task/task.hpp"
#include "tuner/task/task_warnings.hpp"

namespace rdmatune {
namespace {

using Action = Setting::Action;

std::vector<int> hcasOf(const Plan& plan, const OwnGpus& own) {
    std::vector<int> out;
    const auto add = [&](const std::vector<int>& hcas) {
        for (const int hca : hcas)
            if (std::ranges::find(out, hca) == out.end()) out.push_back(hca);
    };
    for (const int gpu : own.gpus)
        for (const GpuPair& pair : plan.pairs)
            if (pair.gpu == gpu) add(pair.hcas);
    if (plan.pairs.empty() && !plan.ranks.empty()) add(plan.ranks[own.slot].hcas);
    return out;
}

std::string withPorts(const Node& node, const std::vector<int>& hcas) {
    std::vector<std::string> out;
    for (const int hca : hcas)
        out.push_back(node.hcas[hca].name + ":" + std::to_string(node.hcas[hca].port));
    return join(out, ",");
}

/// One task's settings, in the order in which `verbose` lists them.
class Preparer {
  public:
    Preparer(const Node& node, const Plan& plan, const Diagnosis& diagnosis, const TaskFacts& facts)
        : node_(node), plan_(plan), diagnosis_(diagnosis), facts_(facts) {}

    TaskOutcome prepare() {
        std::vector<int> step;
        for (const GpuPair& pair : plan_.pairs) step.push_back(pair.gpu);
        const GpuView view = viewGpus(node_, step, facts_);
        const OwnGpus own = chooseGpus(node_, plan_, view, facts_);
        setGpus(own, view);
        setFabric();
        setOwnHcas(own);
        for (const auto& setting : diagnosis_.env)
            offer(setting.name, setting.value, setting.reason);
        setTuner();
        setCpus(own);
        out_.warnings.insert(out_.warnings.end(), own.warnings.begin(), own.warnings.end());
        warnAboutTask(node_, plan_, view, facts_, out_);
        return std::move(out_);
    }

  private:
    /// Sets a variable unless somebody did already.
    bool offer(const std::string& name, const std::string& value, const std::string& reason) {
        if (const std::string* there = lookUp(facts_.env, name)) {
            out_.settings.push_back(
                {name, *there, Action::Keep,
                 *there == value ? "it has this value already" : "it had been set already"});
            return *there == value;
        }
        if (const std::string* there = lookUp(facts_.nccl_conf, name)) {
            out_.settings.push_back(
                {name, *there, Action::Keep, "it is set in " + facts_.nccl_conf_origin});
            return *there == value;
        }
        out_.settings.push_back({name, value, Action::Set, reason});
        return true;
    }

    /// Numbers that a user chose while CUDA counted its own way (the fastest first) mean other GPUs
    /// in PCI order, where the models differ.
    [[nodiscard]] bool numberedByCuda(const GpuView& view) const {
        const std::string* visible = lookUp(facts_.env, "CUDA_VISIBLE_DEVICES");
        if (visible == nullptr || view.origin != GpuView::Origin::User ||
            lookUp(facts_.env, "CUDA_DEVICE_ORDER") != nullptr)
            return false;
        const bool numbers =
            !visible->empty() && visible->front() >= '0' && visible->front() <= '9';
        return numbers && std::ranges::any_of(node_.gpus, [&](const Gpu& gpu) {
                   return gpu.model != node_.gpus.front().model;
               });
    }

    void setGpus(const OwnGpus& own, const GpuView& view) {
        if (numberedByCuda(view))
            out_.settings.push_back({"CUDA_DEVICE_ORDER", "", Action::Keep,
                                     "unset: the GPUs are of several models, and the numbers in "
                                     "CUDA_VISIBLE_DEVICES were chosen in CUDA's own order"});
        else if (!node_.gpus.empty())
            offer("CUDA_DEVICE_ORDER", "PCI_BUS_ID",
                  "CUDA counts GPUs by PCI address, as the plan does");
        const Setting& visible = own.visible_devices;
        const std::string* there = lookUp(facts_.env, visible.name);
        if (visible.action == Action::Set && there != nullptr && *there == visible.value)
            out_.settings.push_back({visible.name, *there, Action::Keep,
                                     "it has this value already: " + visible.reason});
        else if (visible.action == Action::Set || there != nullptr)
            out_.settings.push_back(visible);
    }

    /// What all ranks of the node have alike.
    void setFabric() {
        bool ours = true;
        for (const auto& [name, value] : plan_.env) {
            if (!ours) continue;  // NCCL_CROSS_NIC and the like belong to our list of HCAs
            const bool as_planned =
                offer(name, value,
                      name == "NCCL_IB_HCA"
                          ? "the HCAs near the step's GPUs, alike in every rank of the node"
                          : "follows from what the nodes agreed on");
            if (name == "NCCL_IB_HCA") ours = as_planned;
        }
    }

    /// UCX (and with it Open MPI) and NVSHMEM bind one process to its own HCA.
    void setOwnHcas(const OwnGpus& own) {
        const auto hcas = hcasOf(plan_, own);
        if (hcas.empty()) return;
        const std::string list = withPorts(node_, hcas);
        offer("UCX_NET_DEVICES", list, "the HCA of this rank, for UCX and Open MPI");
        if (own.gpus.empty()) return;
        for (const char* name : {"NVSHMEM_HCA_PE_MAPPING", "NVSHMEM_HCA_LIST"})
            if (const std::string* there = lookUp(facts_.env, name)) {
                out_.settings.push_back({name, *there, Action::Keep, "it had been set already"});
                return;
            }
        // NVSHMEM reads its list only when this switch is on (its own description of the
        // variables).
        if (offer("NVSHMEM_ENABLE_NIC_PE_MAPPING", "1", "makes NVSHMEM read NVSHMEM_HCA_LIST"))
            offer("NVSHMEM_HCA_LIST", list, "the HCA of this rank, for NVSHMEM");
    }

    void setTuner() {
        if (facts_.profile.empty()) return;
        offer("RDMA_TUNE_PROFILE", facts_.profile, "what was measured, for NCCL's tuner");
        const std::string name = "NCCL_TUNER_PLUGIN";
        if (lookUp(facts_.env, name) != nullptr || lookUp(facts_.nccl_conf, name) != nullptr)
            offer(name, facts_.tuner_path, "");
        else if (!facts_.tuner_path.empty() && facts_.tuner_readable)
            offer(name, facts_.tuner_path, "NCCL prices ring and tree by what was measured");
        else if (facts_.local_rank == 0)
            out_.warnings.push_back(
                (facts_.tuner_path.empty()
                     ? std::string("libnccl-tuner-rdmatune.so was not found (option tuner)")
                     : facts_.tuner_path +
                           " does not exist inside this task (in a container: mount it)") +
                ", so NCCL_TUNER_PLUGIN is left unset and NCCL keeps its own prices; where other "
                "nodes have it, ranks choose differently and may hang: have it on all nodes or "
                "none");
    }

    void setCpus(const OwnGpus& own) {
        if (facts_.cpu_bind_by_user) {
            out_.cpus_reason = "the user bound the CPUs (--cpu-bind)";
            return;
        }
        if (plan_.ranks.empty() || plan_.ranks[own.slot].cpus.empty()) {
            out_.cpus_reason = "the plan has no CPUs for this rank";
            return;
        }
        const CpuSet& planned = plan_.ranks[own.slot].cpus;
        const CpuSet permitted = facts_.permitted.empty() ? facts_.affinity : facts_.permitted;
        const CpuSet both = permitted.empty() ? planned : planned & permitted;
        if (both.empty()) {
            out_.cpus_reason = "none of the planned CPUs " + planned.str() +
                               " is among the permitted ones " + permitted.str();
        } else if (both == facts_.affinity) {
            out_.cpus_reason = "the affinity is as planned already";
        } else {
            out_.cpus = both;
            out_.cpus_reason = plan_.pairs.empty() ? "an equal part of the CPUs"
                                                   : "this rank's part of the CPUs near its GPU";
        }
    }

    const Node& node_;
    const Plan& plan_;
    const Diagnosis& diagnosis_;
    const TaskFacts& facts_;
    TaskOutcome out_;
};

}  // namespace

TaskOutcome prepareTask(const Node& node, const Plan& plan, const Diagnosis& diagnosis,
                        const TaskFacts& facts) {
    return Preparer(node, plan, diagnosis, facts).prepare();
}

}  // namespace rdmatune
