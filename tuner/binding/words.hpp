// The sentences of a Plan; private to this room.
#pragma once

#include <string>
#include <vector>

#include "tuner/binding/cores.hpp"
#include "tuner/binding/eligible.hpp"
#include "tuner/binding/plan.hpp"

namespace rdmatune {

/// "GPU 3"
[[nodiscard]] std::string gpuName(int gpu);
/// "GPU 0", "GPUs 0-3", "GPUs 0,2"
[[nodiscard]] std::string gpuNames(const std::vector<int>& gpus);
/// "mlx5_0, mlx5_1:2"
[[nodiscard]] std::string hcaNames(const Node& node, const std::vector<int>& hcas);
/// What a distance means: "share one PCIe switch" ...
[[nodiscard]] std::string_view meaning(Distance distance);

/// RankPlan::reason of every rank, once everything else of the plan is known.
void writeReasons(const Node& node, const std::vector<CoreShare>& cores, Plan& plan);

/// Why an HCA that may be used is used by nobody ("far", "other-gpus").
[[nodiscard]] Verdict whyIdle(const Node& node, const std::vector<int>& gpus, int hca);

/// Notes on sharing, distance, flat machines, bonds.
void writeNotes(const Node& node, const Eligibility& eligibility, Plan& plan);

}  // namespace rdmatune
