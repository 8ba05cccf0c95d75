#include "tuner/task/gpu_view.hpp"

#include <algorithm>
#include <set>

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {

using Origin = GpuView::Origin;

std::vector<int> allGpus(const Node& node) {
    std::vector<int> out;
    for (const Gpu& gpu : node.gpus) out.push_back(gpu.index);
    return out;
}

bool ascending(const std::vector<int>& numbers) {
    return std::ranges::adjacent_find(numbers, std::greater_equal<>()) == numbers.end();
}

/// The step's GPUs as Slurm names them in this environment; nothing outside a step with GPUs.
const std::string* slurmGpus(const Environment& env) {
    const std::string* step = lookUp(env, "SLURM_STEP_GPUS");
    return step != nullptr ? step : lookUp(env, "SLURM_JOB_GPUS");
}

Origin originOf(const Environment& env, const std::string& value) {
    const std::string* given = slurmGpus(env);
    if (const std::string* ordinal = lookUp(env, "GPU_DEVICE_ORDINAL"))
        return given != nullptr && *ordinal == value ? Origin::Slurm : Origin::User;
    if (given == nullptr) return Origin::User;
    const auto numbers = parseNumbers(value);
    const auto step = parseNumbers(*given);
    if (!numbers || !step || !ascending(*numbers)) return Origin::User;
    const std::set<int> physical(step->begin(), step->end());
    const int count = static_cast<int>(step->size());
    const bool absolute =
        std::ranges::all_of(*numbers, [&](int n) { return physical.contains(n); });
    const bool relative = std::ranges::all_of(*numbers, [&](int n) { return n < count; });
    return absolute || relative ? Origin::Slurm : Origin::User;
}

/// "GPU-8932f937-d72c-..." may be cut short, as CUDA allows, while it is unique.
std::optional<int> gpuOfUuid(const Node& node, std::string_view text) {
    std::optional<int> found;
    for (const Gpu& gpu : node.gpus) {
        if (!gpu.uuid || !lower(*gpu.uuid).starts_with(lower(text))) continue;
        if (found) return std::nullopt;
        found = gpu.index;
    }
    return found;
}

/// "MIG-<uuid>" (driver 470 and newer) by the node's list; "MIG-GPU-<uuid>/gi/ci" (older) by its
/// GPU.
std::optional<int> gpuOfMig(const Node& node, std::string_view text) {
    for (const Gpu& gpu : node.gpus)
        for (const std::string& instance : gpu.mig)
            if (lower(instance) == lower(text)) return gpu.index;
    constexpr std::string_view kOldForm = "MIG-GPU-";
    if (!text.starts_with(kOldForm)) return std::nullopt;
    text.remove_prefix(std::string_view("MIG-").size());
    return gpuOfUuid(node, text.substr(0, text.find('/')));
}

/// CUDA stops at the first entry that is no device; so does this.
void applyVisibleDevices(const Node& node, std::string_view value, GpuView& view) {
    const auto order =
        view.origin == Origin::Slurm ? inMinorOrder(node, view.enumerable) : view.enumerable;
    view.visible.clear();
    for (const auto part : split(value, ',')) {
        const auto entry = trim(part);
        std::optional<int> gpu;
        if (entry.starts_with("MIG-")) {
            view.mig = true;
            gpu = gpuOfMig(node, entry);
            if (!gpu) view.unreadable = true;
        } else if (entry.starts_with("GPU-")) {
            gpu = gpuOfUuid(node, entry);
            if (!gpu) view.unreadable = true;
        } else if (const auto number = parseInt<int>(entry); number && *number >= 0) {
            if (*number < static_cast<int>(order.size())) gpu = order[*number];
        }
        if (!gpu) return;
        view.visible.push_back(*gpu);
    }
}

}  // namespace

const std::string* lookUp(const Environment& env, const std::string& name) {
    const auto found = env.find(name);
    return found == env.end() ? nullptr : &found->second;
}

std::optional<std::vector<int>> parseNumbers(std::string_view text) {
    std::vector<int> out;
    for (const auto part : split(trim(text), ',')) {
        const auto dash = part.find('-');
        const auto first = parseInt<int>(part.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : parseInt<int>(part.substr(dash + 1));
        constexpr int kMost = 4096;  // keeps a hostile "0-999999999" harmless
        if (!first || !last || *first < 0 || *last < *first || *last > kMost) return std::nullopt;
        for (int n = *first; n <= *last; ++n) out.push_back(n);
    }
    return out;
}

std::vector<int> inMinorOrder(const Node& node, std::vector<int> gpus) {
    const auto known = [&](int gpu) { return node.gpus[gpu].minor.has_value(); };
    if (std::ranges::all_of(gpus, known))
        std::ranges::stable_sort(gpus, {}, [&](int gpu) { return *node.gpus[gpu].minor; });
    return gpus;
}

GpuView viewGpus(const Node& node, const std::vector<int>& step, const TaskFacts& facts) {
    GpuView out;
    out.enumerable = facts.openable_gpus.value_or(allGpus(node));
    std::ranges::sort(out.enumerable);  // indexes are in PCI order
    if (facts.openable_gpus) out.isolated = !std::ranges::includes(out.enumerable, step);
    const bool all_of_step = std::ranges::includes(out.enumerable, step);
    out.visible = all_of_step && !step.empty() ? step : out.enumerable;
    for (const int gpu : out.enumerable) out.mig = out.mig || !node.gpus[gpu].mig.empty();
    out.isolated = facts.openable_gpus.has_value() && !all_of_step;
    if (const std::string* value = lookUp(facts.env, "CUDA_VISIBLE_DEVICES")) {
        out.origin = originOf(facts.env, *value);
        applyVisibleDevices(node, *value, out);
    }
    return out;
}

}  // namespace rdmatune
