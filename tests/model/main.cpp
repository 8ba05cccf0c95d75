// Prints the regret of the plugin's choices and of NCCL's own, over the grid, against the
// simulator.
//   sweep [--stride N] [--list SHARE]     every N-th case; cases whose regret is above SHARE one by
//   one
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "published.hpp"
#include "sweep.hpp"

namespace {

void print(const char* label, const sweep::Summary& s) {
    std::printf("%-26s %6ld", label, s.cases);
    for (const sweep::Regret* regret : {&s.nccl, &s.ours, &s.model})
        std::printf("   %6.2f %% %6.1f %% %5ld", 100 * s.mean(*regret), 100 * regret->worst,
                    regret->above_15);
    std::printf("   %5ld\n", s.worse_than_nccl);
}

}  // namespace

int main(int count, char** arguments) {
    int stride = 1;
    double list = -1;
    bool check = false;
    for (int i = 1; i < count; ++i) {
        const std::string argument = arguments[i];
        if (argument == "--check") {
            check = true;
        } else if (i + 1 == count) {
            return 2;
        } else if (argument == "--stride") {
            stride = std::atoi(arguments[++i]);
        } else if (argument == "--list") {
            list = std::atof(arguments[++i]);
        } else if (argument == "--published") {
            published::compare(arguments[++i]);
            return 0;
        } else {
            return 2;
        }
    }
    if (stride < 1) return 2;
    const std::vector<sweep::Case> cases = sweep::grid(stride);
    std::vector<sweep::Outcome> outcomes(cases.size());
    const unsigned workers = std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;
    for (unsigned w = 0; w < workers; ++w)
        threads.emplace_back([&, w] {
            for (std::size_t i = w; i < cases.size(); i += workers)
                outcomes[i] = sweep::run(cases[i]);
        });
    for (std::thread& thread : threads) thread.join();

    sweep::Summary all;
    std::map<std::string, sweep::Summary> parts;
    static constexpr const char* kCollectives[] = {"allreduce", "allgather", "reducescatter"};
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const sweep::Case& c = cases[i];
        const sweep::Outcome& o = outcomes[i];
        all.add(c, o);
        const std::string what = kCollectives[static_cast<int>(c.what)];
        parts["1 " + what].add(c, o);
        if (c.what == simulation::Collective::AllReduce) {
            parts["2 allreduce, alpha " +
                  std::to_string(static_cast<int>(1000 + c.alpha_us)).substr(1) + " us"]
                .add(c, o);
            parts["3 allreduce, nodes " + std::to_string(1000 + c.nodes).substr(1)].add(c, o);
            parts["4 allreduce, beta " +
                  std::to_string(static_cast<int>(1000 + 100 * c.beta_share)).substr(1) + " %"]
                .add(c, o);
            parts["5 allreduce, ranks/node " + std::to_string(c.ranks_per_node)].add(c, o);
        }
        if (list >= 0 && (o.regret(o.ours) > list || o.regret(o.model) > list))
            std::printf(
                "%s: plugin %s +%.0f %%, model %s +%.0f %%, NCCL %s +%.0f %%; tree %.0f %.0f %.0f "
                "ring %.0f %.0f "
                "%.0f\n",
                describe(c).c_str(), sweep::describe(o.ours).c_str(), 100 * o.regret(o.ours),
                sweep::describe(o.model).c_str(), 100 * o.regret(o.model),
                sweep::describe(o.nccl).c_str(), 100 * o.regret(o.nccl), o.time[0][0], o.time[0][1],
                o.time[0][2], o.time[1][0], o.time[1][1], o.time[1][2]);
    }
    std::printf(
        "Time lost against the best of ring and tree with the best protocol, simulated: mean, "
        "worst, cases "
        "above 15 %%.\n%-26s %6s   %-23s   %-23s   %-23s   lost to NCCL\n",
        "", "cases", "NCCL by itself", "NCCL with the plugin", "the model alone");
    for (const auto& [label, summary] : parts) print(label.c_str() + 2, summary);
    print("all", all);
    std::printf("worst case with the plugin: %s\nworst case of the model: %s\n",
                describe(all.ours.worst_case).c_str(), describe(all.model.worst_case).c_str());
    // On average under 3 %; in NCCL's table the plugin must do better than NCCL does by itself.
    const bool good = all.mean(all.model) < 0.03 && all.model.worst < 0.20 &&
                      all.mean(all.ours) < 0.03 && all.mean(all.ours) < all.mean(all.nccl) &&
                      all.worse_than_nccl * 50 < all.cases;
    return check && !good ? 1 : 0;
}
