#include "tuner/binding/plan.hpp"

#include <algorithm>
#include <set>

#include "tuner/base/text.hpp"
#include "tuner/binding/cores.hpp"
#include "tuner/binding/eligible.hpp"
#include "tuner/binding/pairing.hpp"
#include "tuner/binding/words.hpp"

namespace rdmatune {
namespace {

std::string onNode(const Node& node) {
    return node.hostname.empty() ? std::string("the node") : "node " + node.hostname;
}

Result<std::vector<int>> stepGpus(const Node& node, const PlanRequest& request) {
    std::set<int> gpus;
    if (!request.gpus)
        for (const Gpu& gpu : node.gpus) gpus.insert(gpu.index);
    else
        for (const int gpu : *request.gpus) {
            if (gpu < 0 || gpu >= static_cast<int>(node.gpus.size()))
                return Error{"GPU index " + std::to_string(gpu) + " does not exist: " +
                             onNode(node) + " has " + std::to_string(node.gpus.size()) +
                             " GPUs, counted from 0 in PCI order"};
            gpus.insert(gpu);
        }
    return std::vector<int>(gpus.begin(), gpus.end());
}

/// Ranks with fewer GPUs than tasks, or the reverse: neighbours in blocks, the bigger blocks first.
std::vector<std::vector<int>> dealGpus(const std::vector<int>& gpus, int tasks) {
    std::vector<std::vector<int>> out(static_cast<std::size_t>(tasks));
    if (gpus.empty()) return out;
    const std::size_t groups = std::min(gpus.size(), out.size());
    const auto start = [groups](std::size_t total, std::size_t group) {
        return group * (total / groups) + std::min(group, total % groups);
    };
    for (std::size_t g = 0; g < groups; ++g)
        for (std::size_t r = start(out.size(), g); r < start(out.size(), g + 1); ++r)
            for (std::size_t i = start(gpus.size(), g); i < start(gpus.size(), g + 1); ++i)
                out[r].push_back(gpus[i]);
    return out;
}

/// A rank without GPU is as near to an HCA as its cores are.
Distance distanceFromCores(const Node& node, const CpuSet& cpus, const Hca& hca) {
    for (const NumaNode& numa : node.numa)
        if (hca.numa >= 0 && numa.os_index == hca.numa)
            return (numa.cpus & cpus).empty() ? Distance::Sys : Distance::Node;
    return Distance::Unknown;
}

/// The order of the rails: PCI order, or the order of the agreed subnets.
std::vector<int> railOrder(const Node& node, std::vector<int> hcas, const PlanRequest& request) {
    if (!request.agreed || !request.agreed->rails_by_subnet) return hcas;
    const auto& subnets = request.agreed->subnets;
    std::ranges::stable_sort(hcas, {}, [&](int hca) {
        return std::ranges::find(subnets, subnetOf(node.hcas[hca])) - subnets.begin();
    });
    return hcas;
}

/// One node's plan, step by step.
class Planner {
  public:
    Planner(const Node& node, const PlanRequest& request, std::vector<int> gpus,
            Eligibility eligibility)
        : node_(node),
          request_(request),
          gpus_(std::move(gpus)),
          eligibility_(std::move(eligibility)) {}

    Plan make() {
        makeRanks();
        pairHcas();
        listExcluded();
        writeEnvironment();
        writeNotes(node_, eligibility_, plan_);
        writeReasons(node_, cores_, plan_);
        return std::move(plan_);
    }

  private:
    void makeRanks() {
        const auto gpus_of_rank = dealGpus(gpus_, request_.local_tasks);
        cores_ = splitCores(node_, gpus_of_rank, request_.cpus.value_or(node_.cpus));
        for (std::size_t r = 0; r < gpus_of_rank.size(); ++r) {
            RankPlan rank;
            rank.local_rank = static_cast<int>(r);
            rank.gpus = gpus_of_rank[r];
            rank.cpus = cores_[r].cpus;
            plan_.ranks.push_back(std::move(rank));
        }
    }

    [[nodiscard]] std::vector<std::vector<Distance>> anchorDistances() const {
        std::vector<std::vector<Distance>> out;
        const int hcas = static_cast<int>(node_.hcas.size());
        for (const int gpu : gpus_) {
            auto& row = out.emplace_back();
            for (int hca = 0; hca < hcas; ++hca) row.push_back(distanceBetween(node_, gpu, hca));
        }
        if (!gpus_.empty()) return out;
        for (const RankPlan& rank : plan_.ranks) {
            auto& row = out.emplace_back();
            for (const Hca& hca : node_.hcas)
                row.push_back(distanceFromCores(node_, rank.cpus, hca));
        }
        return out;
    }

    void pairHcas() {
        const auto distance = anchorDistances();
        auto rails = railOrder(node_, eligibility_.usable(), request_);
        auto pairing = pairUp(distance, rails);
        exclude(pairing.idle);
        std::erase_if(rails, [&](int hca) { return eligibility_.verdicts[hca].has_value(); });
        if (request_.agreed && request_.agreed->rails > 0 &&
            rails.size() > static_cast<std::size_t>(request_.agreed->rails)) {
            rails = dropRails(distance, rails);
            pairing = pairUp(distance, rails);
        }
        plan_.hcas = rails;
        if (gpus_.empty()) {
            for (std::size_t r = 0; r < plan_.ranks.size(); ++r)
                giveHcas(plan_.ranks[r], pairing.hcas[r], distance[r]);
            return;
        }
        for (std::size_t i = 0; i < gpus_.size(); ++i) {
            GpuPair pair{gpus_[i], pairing.hcas[i], Distance::Unknown};
            if (!pair.hcas.empty()) pair.distance = distance[i][pair.hcas.front()];
            plan_.pairs.push_back(std::move(pair));
        }
        for (RankPlan& rank : plan_.ranks)
            for (const int gpu : rank.gpus) {
                const auto i = std::ranges::find(gpus_, gpu) - gpus_.begin();
                giveHcas(rank, pairing.hcas[i], distance[i]);
            }
    }

    /// Adds HCAs to a rank; its distance is the one of its worst GPU.
    static void giveHcas(RankPlan& rank, const std::vector<int>& hcas,
                         const std::vector<Distance>& distance) {
        if (hcas.empty()) return;
        const Distance here = distance[hcas.front()];
        rank.distance = rank.hcas.empty() ? here : std::max(rank.distance, here);
        for (const int hca : hcas)
            if (std::ranges::find(rank.hcas, hca) == rank.hcas.end()) rank.hcas.push_back(hca);
    }

    void exclude(const std::vector<int>& idle) {
        for (const int hca : idle) eligibility_.verdicts[hca] = whyIdle(node_, gpus_, hca);
    }

    /// Every node of the job must bring the same number of rails, or the smallest sets the pace.
    std::vector<int> dropRails(const std::vector<std::vector<Distance>>& distance,
                               const std::vector<int>& rails) {
        const int agreed = request_.agreed->rails;
        const auto kept = keepNearest(distance, rails, static_cast<std::size_t>(agreed));
        for (const int hca : rails)
            if (std::ranges::find(kept, hca) == kept.end())
                eligibility_.verdicts[hca] = {
                    "no-counterpart", "Only " + std::to_string(agreed) +
                                          (agreed == 1 ? " HCA is" : " HCAs are") +
                                          " usable on every node of the job, and it is not among "
                                          "the ones that serve the GPUs here best."};
        return kept;
    }

    void listExcluded() {
        for (std::size_t i = 0; i < node_.hcas.size(); ++i)
            if (const auto& verdict = eligibility_.verdicts[i])
                plan_.excluded.push_back({node_.hcas[i].label(), verdict->code, verdict->reason});
        plan_.notes = eligibility_.notes;
    }

    /// Only what every rank of the node must have alike; nothing where there is no usable HCA, so
    /// that NCCL's own search and its TCP transport stay as they are.
    void writeEnvironment() {
        if (plan_.hcas.empty()) return;
        std::vector<std::string> ports;
        for (const int hca : plan_.hcas)
            ports.push_back(node_.hcas[hca].name + ":" + std::to_string(node_.hcas[hca].port));
        plan_.env.emplace_back("NCCL_IB_HCA", "=" + join(ports, ","));
        if (!request_.agreed || request_.agreed->rails_cross || plan_.hcas.size() < 2) return;
        const std::set<std::string> subnets(request_.agreed->subnets.begin(),
                                            request_.agreed->subnets.end());
        if (subnets.size() < 2) return;
        plan_.env.emplace_back("NCCL_CROSS_NIC", "0");
        plan_.notes.emplace_back(
            "The rails do not reach one another, so NCCL_CROSS_NIC=0 keeps every connection on "
            "its rail.");
    }

    const Node& node_;
    const PlanRequest& request_;
    std::vector<int> gpus_;
    Eligibility eligibility_;
    std::vector<CoreShare> cores_;
    Plan plan_;
};

}  // namespace

Result<Plan> makePlan(const Node& node, const PlanRequest& request) {
    if (request.local_tasks < 1)
        return Error{"a plan for " + std::to_string(request.local_tasks) +
                     " tasks cannot be made: at least one is needed"};
    auto gpus = stepGpus(node, request);
    if (!gpus) return gpus.error();
    auto eligibility = judgeHcas(node, request, *gpus);
    if (!eligibility) return eligibility.error();
    return Planner(node, request, std::move(*gpus), std::move(*eligibility)).make();
}

}  // namespace rdmatune
