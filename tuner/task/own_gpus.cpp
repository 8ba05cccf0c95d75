#include "tuner/task/own_gpus.hpp"

#include <algorithm>
#include <set>

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

std::vector<int> stepOf(const Plan& plan) {
    std::vector<int> out;
    for (const GpuPair& pair : plan.pairs) out.push_back(pair.gpu);
    return out;
}

bool contains(const std::vector<int>& list, int value) {
    return std::ranges::find(list, value) != list.end();
}

bool sameSet(const std::vector<int>& a, const std::vector<int>& b) {
    return std::set<int>(a.begin(), a.end()) == std::set<int>(b.begin(), b.end());
}

/// CUDA's numbers: positions among what the driver shows.
std::string numbersOf(const GpuView& view, const std::vector<int>& gpus) {
    std::vector<std::string> out;
    for (const int gpu : gpus)
        out.push_back(
            std::to_string(std::ranges::find(view.enumerable, gpu) - view.enumerable.begin()));
    return join(out, ",");
}

std::vector<int> firstOfEachRankFirst(const Plan& plan, const std::vector<int>& step) {
    std::vector<int> out;
    for (const RankPlan& rank : plan.ranks)
        if (!rank.gpus.empty() && !contains(out, rank.gpus.front()))
            out.push_back(rank.gpus.front());
    for (const int gpu : step)
        if (!contains(out, gpu)) out.push_back(gpu);
    return out;
}

/// What rank `local_rank` of `tasks` would use of a list that was given as it is.
std::vector<int> shareOf(const std::vector<int>& visible, int local_rank, int tasks) {
    if (visible.size() <= 1 || tasks <= 1) return visible;
    return {visible[static_cast<std::size_t>(local_rank) % visible.size()]};
}

class Chooser {
  public:
    Chooser(const Node& node, const Plan& plan, const GpuView& view, const TaskFacts& facts)
        : node_(node), plan_(plan), view_(view), facts_(facts), step_(stepOf(plan)) {
        if (const std::string* value = lookUp(facts.env, kVisible)) inherited_ = *value;
    }

    OwnGpus choose() {
        out_.visible_devices = {kVisible, inherited_.value_or(""), Setting::Action::Keep, ""};
        const int ranks = static_cast<int>(plan_.ranks.size());
        out_.slot = ranks == 0 ? 0 : std::clamp(facts_.local_rank, 0, ranks - 1);
        if (ranks == 0 || node_.gpus.empty()) {
            out_.visible_devices.reason = "there is no GPU on this node";
        } else if (std::ranges::any_of(node_.gpus, [](const Gpu& gpu) {
                       return !gpu.vendor.empty() && gpu.vendor != "nvidia";
                   })) {
            out_.visible_devices.reason = "these GPUs are not NVIDIA's";
            out_.gpus = plan_.ranks[out_.slot].gpus;
        } else if (view_.mig) {
            keep("MIG instances are used as they were given");
        } else if (view_.origin == GpuView::Origin::User) {
            keep("it had been set already, by the user or a script");
        } else if (view_.visible.empty()) {
            out_.visible_devices.reason = "this task was given no GPU";
        } else if (sameSet(view_.visible, step_)) {
            showAll();
        } else {
            showOwn();
        }
        takeSlot();
        return std::move(out_);
    }

  private:
    void keep(std::string reason) {
        out_.visible_devices.reason = std::move(reason);
        out_.gpus = shareOf(view_.visible, facts_.local_rank, facts_.local_tasks);
        if (view_.unreadable)
            out_.warnings.push_back(std::string(kVisible) + "=" + inherited_.value_or("") +
                                    " names a device that this node's topology does not know; it "
                                    "is left as it is, without pairing.");
    }

    void set(std::string value, std::string reason) {
        out_.visible_devices.value = std::move(value);
        out_.visible_devices.action = Setting::Action::Set;
        out_.visible_devices.reason = std::move(reason);
    }

    void showAll() {
        const RankPlan& rank = plan_.ranks[out_.slot];
        out_.gpus = rank.gpus;
        set(numbersOf(view_, firstOfEachRankFirst(plan_, step_)),
            facts_.local_tasks > 1
                ? "all GPUs of the step, in the order in which device LOCALID is the rank's own"
                : "all GPUs of the step, in PCI order");
    }

    void showOwn() {
        const auto& visible = view_.visible;
        const std::size_t share =
            std::max<std::size_t>(1, step_.size() / std::max<std::size_t>(1, plan_.ranks.size()));
        if (visible.size() <= share || plan_.ranks.size() == 1) {
            out_.gpus = visible;
            std::ranges::sort(out_.gpus);
            set(numbersOf(view_, out_.gpus), "the GPUs that Slurm gave this task");
            return;
        }
        for (const int gpu : plan_.ranks[out_.slot].gpus)
            if (contains(visible, gpu)) out_.gpus.push_back(gpu);
        if (out_.gpus.empty()) {
            // The other tasks' sets are not known here; ranks that see the same set are spread
            // over it by their local rank.
            const auto at =
                static_cast<std::size_t>(facts_.local_rank) * visible.size() / plan_.ranks.size();
            out_.gpus = {visible[std::min(at, visible.size() - 1)]};
        }
        set(numbersOf(view_, out_.gpus), "Slurm gave this task " + std::to_string(visible.size()) +
                                             " of the step's " + std::to_string(step_.size()) +
                                             " GPUs; this one is its own");
    }

    /// Cores and HCAs go with the GPU: when Slurm gave this task another rank's, it takes that
    /// rank's place.
    void takeSlot() {
        if (out_.gpus.empty() || plan_.ranks.empty()) return;
        if (sameSet(plan_.ranks[out_.slot].gpus, out_.gpus)) return;
        for (std::size_t r = 0; r < plan_.ranks.size(); ++r)
            if (sameSet(plan_.ranks[r].gpus, out_.gpus)) {
                out_.slot = static_cast<int>(r);
                return;
            }
    }

    const Node& node_;
    const Plan& plan_;
    const GpuView& view_;
    const TaskFacts& facts_;
    std::vector<int> step_;
    std::optional<std::string> inherited_;
    OwnGpus out_;
};

}  // namespace

OwnGpus chooseGpus(const Node& node, const Plan& plan, const GpuView& view,
                   const TaskFacts& facts) {
    return Chooser(node, plan, view, facts).choose();
}

}  // namespace rdmatune
