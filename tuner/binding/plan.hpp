// Which rank of a node gets which GPUs, HCAs and cores, and why. A plain value.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/base/result.hpp"
#include "tuner/binding/agreement.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

/// What is asked of the planner about one node.
struct PlanRequest {
    int local_tasks = 1;
    /// The GPUs the step was given, as indexes into Node::gpus; absent: all of them.
    std::optional<std::vector<int>> gpus;
    /// The CPUs the step may use; absent: all of the Node's.
    std::optional<CpuSet> cpus;
    /// Site's choice: names ("mlx5_1"), name and port ("mlx5_1:2") or PCI addresses, all exact.
    std::vector<std::string> hca_include;
    std::vector<std::string> hca_exclude;
    /// What is known of the job's other nodes (agreed by the agents); empty: nothing.
    /// GID or subnet prefixes that every node reaches; a port in none of them is left out.
    std::vector<std::string> common_subnets;
    /// What the job's nodes agreed on before they measured; absent: they were not asked.
    std::optional<Agreement> agreed;
};

/// One GPU of the step with the HCA it was given. Holds for every way the tasks see the GPUs.
struct GpuPair {
    int gpu = 0;                            ///< index into Node::gpus
    std::vector<int> hcas;                  ///< indexes into Node::hcas; nearest first
    Distance distance = Distance::Unknown;  ///< to hcas.front()
    bool operator==(const GpuPair&) const = default;
};

struct RankPlan {
    int local_rank = 0;
    std::vector<int> gpus;                  ///< indexes into Node::gpus; empty: no GPU
    std::vector<int> hcas;                  ///< indexes into Node::hcas; empty: no usable HCA
    Distance distance = Distance::Unknown;  ///< of the rank's worst GPU to its HCA
    CpuSet cpus;                            ///< empty: leave the affinity alone
    std::string reason;                     ///< one sentence
    bool operator==(const RankPlan&) const = default;
};

/// An HCA that is not used, and why.
struct ExcludedHca {
    std::string hca;     ///< Hca::label()
    std::string code;    ///< stable: "port-down", "other-link-layer", "slow", "site", ...
    std::string reason;  ///< one sentence
    bool operator==(const ExcludedHca&) const = default;
};

struct Plan {
    std::vector<RankPlan> ranks;
    std::vector<GpuPair> pairs;  ///< one for each GPU of the step, in PCI order
    std::vector<int> hcas;       ///< all used, indexes into Node::hcas, PCI order: the rails
    std::vector<ExcludedHca> excluded;
    /// What every rank of the node gets alike (NCCL_IB_HCA ...), in the order to print.
    std::vector<std::pair<std::string, std::string>> env;
    std::vector<std::string> notes;  ///< what a person should be told, each one sentence
    bool operator==(const Plan&) const = default;
};

/// Plans one node. Never fails for a Node that a reader made; errors are a request that cannot
/// be: no task, a GPU index the node does not have, a site's name that matches nothing where
/// hca_include leaves no HCA.
[[nodiscard]] Result<Plan> makePlan(const Node& node, const PlanRequest& request);

/// Plan's one text form (the JSON of `rdma-tune plan --json`), and back.
[[nodiscard]] std::string planToJson(const Plan& plan, const Node& node, int indent = -1);
[[nodiscard]] Result<Plan> planFromJson(std::string_view json, const Node& node);

/// The table of ranks that srun prints, one line per rank, no trailing newline.
[[nodiscard]] std::string planToTable(const Plan& plan, const Node& node);

}  // namespace rdmatune
