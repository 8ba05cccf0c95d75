#include "tuner/binding/spread.hpp"

#include <algorithm>
#include <cstddef>
#include <queue>

namespace rdmatune {
namespace {

constexpr int kNone = -1;

/// One optimal semi-matching in the making.
class SemiMatching {
  public:
    SemiMatching(const std::vector<std::vector<int>>& allowed, const std::vector<int>& base)
        : allowed_(allowed),
          load_(base),
          jobs_of_(base.size()),
          machine_of_(allowed.size(), kNone) {}

    void solve() {
        for (std::size_t job = 0; job < allowed_.size(); ++job) place(static_cast<int>(job));
    }

    [[nodiscard]] long long cost() const {
        long long sum = 0;
        for (const int load : load_) sum += static_cast<long long>(load) * load;
        return sum;
    }

    [[nodiscard]] const std::vector<int>& machines() const { return machine_of_; }

  private:
    /// Breadth-first over machines; from a machine, its jobs could move to their other machines.
    void place(int job) {
        std::vector<int> via_job(load_.size(), kNone);
        std::queue<int> open;
        const auto reach = [&](int from) {
            for (const int machine : allowed_[from])
                if (via_job[machine] == kNone) {
                    via_job[machine] = from;
                    open.push(machine);
                }
        };
        reach(job);
        int best = open.front();
        while (!open.empty()) {
            const int machine = open.front();
            open.pop();
            if (load_[machine] < load_[best]) best = machine;
            for (const int other : jobs_of_[machine]) reach(other);
        }
        ++load_[best];
        for (int machine = best;;) {  // walk back, moving each job on the path one step
            const int moved = via_job[machine];
            const int left = machine_of_[moved];
            machine_of_[moved] = machine;
            jobs_of_[machine].push_back(moved);
            if (left == kNone) break;
            std::erase(jobs_of_[left], moved);
            machine = left;
        }
    }

    const std::vector<std::vector<int>>& allowed_;
    std::vector<int> load_;
    std::vector<std::vector<int>> jobs_of_;
    std::vector<int> machine_of_;
};

long long leastCost(const std::vector<std::vector<int>>& allowed, const std::vector<int>& base) {
    SemiMatching matching(allowed, base);
    matching.solve();
    return matching.cost();
}

}  // namespace

std::vector<int> spreadEvenly(const std::vector<std::vector<int>>& allowed,
                              const std::vector<int>& base, const std::vector<int>& preference) {
    std::vector<int> position(base.size(), 0);
    for (std::size_t i = 0; i < preference.size(); ++i)
        position[preference[i]] = static_cast<int>(i);
    auto fixed = allowed;
    for (auto& machines : fixed)
        std::ranges::sort(machines, {}, [&](int machine) { return position[machine]; });
    const long long least = leastCost(fixed, base);
    std::vector<int> out;
    for (auto& machines : fixed) {
        // The first machine that an optimal assignment can still have; one of them always can.
        const auto choices = machines;
        for (const int machine : choices) {
            machines = {machine};
            if (machine == choices.back() || leastCost(fixed, base) == least) break;
        }
        out.push_back(machines.front());
    }
    return out;
}

std::vector<int> balance(const std::vector<std::vector<int>>& allowed, std::size_t machines) {
    const std::vector<int> base(machines, 0);
    SemiMatching matching(allowed, base);
    matching.solve();
    return matching.machines();
}

}  // namespace rdmatune
