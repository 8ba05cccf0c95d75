#include "tuner/binding/words.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {

std::string ranksText(const std::vector<int>& ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") +
           CpuSet(std::set<int>(ranks.begin(), ranks.end())).str();
}

/// The other ranks of the plan for which `same` holds.
template <class Same>
std::vector<int> others(const Plan& plan, int rank, Same same) {
    std::vector<int> out;
    for (const RankPlan& other : plan.ranks)
        if (other.local_rank != rank && same(other)) out.push_back(other.local_rank);
    return out;
}

bool has(const std::vector<int>& list, int value) {
    return std::ranges::find(list, value) != list.end();
}

std::string aboutPlace(const Node& node, const RankPlan& rank) {
    if (rank.hcas.empty())
        return rank.gpus.empty() ? "It has no GPU and no usable HCA"
                                 : gpuNames(rank.gpus) + ": no usable HCA";
    const std::string hcas = hcaNames(node, rank.hcas);
    if (rank.gpus.empty())
        return "It has no GPU; " + hcas +
               (rank.distance == Distance::Node  ? " is near its cores"
                : rank.distance == Distance::Sys ? " is on another NUMA node than its cores"
                                                 : ", an even share");
    if (rank.gpus.size() == 1 || rank.hcas.size() == 1)
        return gpuNames(rank.gpus) + " and " + hcas + " " + std::string(meaning(rank.distance));
    return gpuNames(rank.gpus) + " use " + hcas + ", each its nearest; the farthest two " +
           std::string(meaning(rank.distance));
}

std::string aboutSharing(const Node& node, const Plan& plan, const RankPlan& rank) {
    std::string out;
    if (!rank.gpus.empty()) {
        const auto gpu = others(plan, rank.local_rank, [&](const RankPlan& other) {
            return has(other.gpus, rank.gpus.front());
        });
        if (!gpu.empty()) out += "; the GPU is shared with " + ranksText(gpu);
        if (!gpu.empty()) return out;  // then the HCA is shared too, as a matter of course
    }
    if (!rank.hcas.empty()) {
        const int first = rank.hcas.front();
        const auto hca = others(plan, rank.local_rank,
                                [&](const RankPlan& other) { return has(other.hcas, first); });
        if (!hca.empty())
            out += "; " + node.hcas[first].label() + " is shared with " + ranksText(hca);
    }
    return out;
}

std::string aboutCores(const RankPlan& rank, const CoreShare& share) {
    if (share.cpus.empty()) return {};
    std::string out;
    switch (share.from) {
        case CoreShare::From::Near:
            out = rank.gpus.size() > 1 ? "; CPUs near them" : "; CPUs near it";
            break;
        case CoreShare::From::Elsewhere:
            out = "; no allowed CPU is near the GPU, so it gets others";
            break;
        case CoreShare::From::Anywhere:
            out = "; an equal part of the CPUs";
            break;
    }
    if (share.shared) out += ", shared because there are fewer CPUs than ranks";
    return out;
}

/// An HCA that was left out although it is nearer to this GPU than the one it got.
std::string nearerButExcluded(const Node& node, const Eligibility& eligibility,
                              const GpuPair& pair) {
    for (std::size_t h = 0; h < node.hcas.size(); ++h) {
        const int hca = static_cast<int>(h);
        if (eligibility.verdicts[h] && distanceBetween(node, pair.gpu, hca) < pair.distance)
            return " " + node.hcas[h].label() + " would be nearer but is left out (" +
                   eligibility.verdicts[h]->code + ").";
    }
    return {};
}

/// "NIC0": what stands in for a name that a matrix or a provider's file does not tell.
bool isPlaceholder(std::string_view name) {
    return name.size() > 3 && name.starts_with("NIC") &&
           name.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

void noteTasks(const Plan& plan, std::vector<std::string>& notes) {
    const std::size_t gpus = plan.pairs.size();
    const std::size_t tasks = plan.ranks.size();
    if (gpus == 0 || tasks <= gpus) return;
    notes.push_back(std::to_string(tasks) + " tasks share " + std::to_string(gpus) +
                    (gpus == 1 ? " GPU" : " GPUs") +
                    (tasks % gpus == 0 ? ", " + std::to_string(tasks / gpus) + " tasks on each."
                                       : ", some GPUs with one task more than others."));
}

void noteDistances(const Node& node, const Eligibility& eligibility, const Plan& plan,
                   std::vector<std::string>& notes) {
    if (plan.pairs.empty() || plan.hcas.empty()) return;
    if (node.flat) {
        notes.emplace_back(
            "No PCIe switch is to be seen between GPUs and HCAs, as in a virtual machine: they are "
            "spread evenly. If the provider publishes a topology file, name it in rdma-tune.conf "
            "(topology).");
        return;
    }
    std::set<Distance> seen;
    for (const GpuPair& pair : plan.pairs)
        for (const int hca : plan.hcas) seen.insert(distanceBetween(node, pair.gpu, hca));
    if (seen.size() == 1 && plan.hcas.size() > 1 && plan.pairs.size() > 1)
        notes.push_back("All HCAs are equally far from all GPUs (" +
                        std::string(toString(*seen.begin())) + "): they are spread evenly.");
    std::map<std::string, std::pair<std::vector<int>, std::set<int>>> across;  // nearer -> pairs
    std::vector<int> unknown;
    for (const GpuPair& pair : plan.pairs) {
        const std::string& hca = node.hcas[pair.hcas.front()].label();
        const std::string nearer = nearerButExcluded(node, eligibility, pair);
        if (pair.distance == Distance::Unknown)
            unknown.push_back(pair.gpu);
        else if (pair.distance == Distance::Sys) {
            across[nearer].first.push_back(pair.gpu);
            across[nearer].second.insert(pair.hcas.front());
        } else if (!nearer.empty())
            notes.push_back(gpuName(pair.gpu) + " gets " + hca + " (" +
                            std::string(toString(pair.distance)) + ")." + nearer);
    }
    for (const auto& [nearer, pairs] : across)
        notes.push_back("No usable HCA is on the socket of " + gpuNames(pairs.first) + ": " +
                        hcaNames(node, {pairs.second.begin(), pairs.second.end()}) +
                        (pairs.second.size() == 1 ? " is" : " are") +
                        " across sockets (SYS), where GPUDirect RDMA does not pay." + nearer);
    if (!unknown.empty())
        notes.push_back("How far the HCAs are from " + gpuNames(unknown) +
                        " is not known: the ones left over are spread evenly.");
}

void noteHcas(const Node& node, const Plan& plan, std::vector<std::string>& notes) {
    if (plan.hcas.empty() && !node.hcas.empty())
        notes.emplace_back("No HCA of this node is usable: NCCL_IB_HCA is left alone.");
    if (!plan.pairs.empty() && !plan.hcas.empty() && plan.hcas.size() < plan.pairs.size())
        notes.push_back(std::to_string(plan.pairs.size()) + " GPUs share " +
                        std::to_string(plan.hcas.size()) +
                        (plan.hcas.size() == 1 ? " HCA." : " HCAs."));
    std::vector<int> numbered;
    for (const int hca : plan.hcas)
        if (node.source != TopologySource::Live && isPlaceholder(node.hcas[hca].name))
            numbered.push_back(hca);
    if (!numbered.empty())
        notes.push_back(node.hcas[numbered.front()].name +
                        (numbered.size() == 1 ? " is" : " and the like are") +
                        " a number in the saved topology, no device's name: on the machine itself "
                        "NCCL_IB_HCA gets the real names.");
    std::vector<int> bonds;
    for (const int hca : plan.hcas)
        if (node.hcas[hca].is_bond) bonds.push_back(hca);
    if (!bonds.empty())
        notes.push_back(hcaNames(node, bonds) + (bonds.size() == 1 ? " is a bond" : " are bonds") +
                        ": one queue pair uses one of its ports. Set NCCL_IB_QPS_PER_CONNECTION=2 "
                        "(or 4) on all nodes to use both.");
}

}  // namespace

std::string gpuName(int gpu) {
    return "GPU " + std::to_string(gpu);
}

std::string gpuNames(const std::vector<int>& gpus) {
    if (gpus.size() == 1) return gpuName(gpus.front());
    return "GPUs " + CpuSet(std::set<int>(gpus.begin(), gpus.end())).str();
}

std::string hcaNames(const Node& node, const std::vector<int>& hcas) {
    std::vector<std::string> labels;
    for (const int hca : hcas) labels.push_back(node.hcas[hca].label());
    return join(labels, ", ");
}

std::string_view meaning(Distance distance) {
    switch (distance) {
        case Distance::Pix:
            return "share one PCIe switch (PIX)";
        case Distance::Pxb:
            return "are joined by PCIe switches alone (PXB)";
        case Distance::Phb:
            return "meet at one PCIe host bridge (PHB)";
        case Distance::Node:
            return "are on one NUMA node or package (NODE)";
        case Distance::Sys:
            return "are on different sockets (SYS)";
        case Distance::Unknown:
            break;
    }
    return "are at a distance that is not known";
}

void writeReasons(const Node& node, const std::vector<CoreShare>& cores, Plan& plan) {
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
        RankPlan& rank = plan.ranks[r];
        rank.reason = aboutPlace(node, rank) + aboutSharing(node, plan, rank) +
                      aboutCores(rank, cores[r]) + ".";
    }
}

Verdict whyIdle(const Node& node, const std::vector<int>& gpus, int hca) {
    auto nearest_here = Distance::Unknown;
    for (const int gpu : gpus)
        nearest_here = std::min(nearest_here, distanceBetween(node, gpu, hca));
    if (gpus.empty())
        return {"far",
                "It is on another NUMA node than all cores of the step, and nearer ones "
                "are usable."};
    const Gpu* owner = nullptr;
    for (const Gpu& gpu : node.gpus) {
        if (has(gpus, gpu.index)) continue;
        const auto best = owner ? distanceBetween(node, owner->index, hca) : nearest_here;
        if (distanceBetween(node, gpu.index, hca) < best) owner = &gpu;
    }
    if (owner != nullptr)
        return {"other-gpus", "It is nearest to " + gpuName(owner->index) + " (" +
                                  std::string(toString(distanceBetween(node, owner->index, hca))) +
                                  "), which this step does not have."};
    const bool all_known = std::ranges::all_of(
        gpus, [&](int gpu) { return distanceBetween(node, gpu, hca) != Distance::Unknown; });
    return {"far", "It is no nearer than " + std::string(toString(nearest_here)) +
                       " to any GPU of the step" +
                       (all_known ? ", and every GPU has a nearer HCA."
                                  : " whose distances are known, and every GPU has another HCA.")};
}

void writeNotes(const Node& node, const Eligibility& eligibility, Plan& plan) {
    noteTasks(plan, plan.notes);
    noteDistances(node, eligibility, plan, plan.notes);
    noteHcas(node, plan, plan.notes);
}

}  // namespace rdmatune
