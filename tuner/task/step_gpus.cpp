#include "tuner/task/step_gpus.hpp"

#include <algorithm>
#include <set>

namespace rdmatune {
namespace {

/// Slurm's numbers as GPUs of the node; nothing when one of them is no GPU here.
std::optional<std::set<int>> gpusOfNumbers(const Node& node, const std::vector<int>& numbers) {
    std::set<int> out;
    const bool minors =
        std::ranges::any_of(node.gpus, [](const Gpu& gpu) { return gpu.minor.has_value(); });
    for (const int number : numbers) {
        const auto found = std::ranges::find_if(node.gpus, [&](const Gpu& gpu) {
            return minors ? gpu.minor == number : gpu.index == number;
        });
        if (found == node.gpus.end()) return std::nullopt;
        out.insert(found->index);
    }
    return out;
}

std::set<int> allGpus(const Node& node) {
    std::set<int> out;
    for (const Gpu& gpu : node.gpus) out.insert(gpu.index);
    return out;
}

}  // namespace

std::vector<int> stepGpus(const Node& node, const Environment& env,
                          const std::optional<std::vector<int>>& openable) {
    std::set<int> gpus =
        openable ? std::set<int>(openable->begin(), openable->end()) : allGpus(node);
    const std::string* text = lookUp(env, "SLURM_STEP_GPUS");
    if (text == nullptr) text = lookUp(env, "SLURM_JOB_GPUS");
    if (text != nullptr)
        if (const auto numbers = parseNumbers(*text))
            if (const auto named = gpusOfNumbers(node, *numbers)) {
                std::set<int> both;
                std::ranges::set_intersection(gpus, *named, std::inserter(both, both.end()));
                if (!both.empty()) gpus = both;
            }
    return {gpus.begin(), gpus.end()};
}

Result<Plan> fitPlan(const Node& node, const PlanRequest& request, const Plan& plan,
                     const TaskFacts& facts) {
    std::vector<int> step;
    for (const GpuPair& pair : plan.pairs) step.push_back(pair.gpu);
    const GpuView view = viewGpus(node, step, facts);
    const auto& seen = view.visible;
    const auto tasks = static_cast<std::size_t>(facts.local_tasks);
    const bool inside = std::ranges::all_of(
        seen, [&](int gpu) { return std::ranges::find(step, gpu) != step.end(); });
    const bool narrowed = view.origin == GpuView::Origin::User && !view.mig &&
                          seen.size() >= tasks &&
                          std::set<int>(seen.begin(), seen.end()).size() < step.size();
    if (seen.empty() || (inside && !narrowed)) return plan;
    PlanRequest again = request;
    again.local_tasks = facts.local_tasks;
    if (seen.size() >= tasks)
        again.gpus = seen;
    else
        again.gpus.reset();
    return makePlan(node, again);
}

}  // namespace rdmatune
