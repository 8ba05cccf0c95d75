// One case of the sweep: what each choice costs on a simulated cluster, and what was chosen.
#pragma once

#include <string>
#include <vector>

#include "simulator.hpp"
#include "tuner/model/nccl_price.hpp"

namespace sweep {

/// A cluster, a message, and the network as it is. One rail for each rank of a node.
struct Case {
    simulation::Collective what = simulation::Collective::AllReduce;
    int nodes = 2;
    int ranks_per_node = 8;
    double rail_gbs = 50;   ///< link rate of one rail: what NCCL believes
    double beta_share = 1;  ///< of it, what the network really carries
    double alpha_us = 1;
    double bytes = 1024;
    /// One place that is worse than the rest; the profile's worst figures tell of it.
    double worst_alpha_us = 0;  ///< of one edge of the ring, both ways; 0: all alike
    double worst_share = 0;     ///< what one node's rails carry of beta_share; 0: all alike
};

/// How much of the choice is the plugin's own.
enum class Kind {
    Neutral,  ///< the network is as NCCL assumes: nothing may change, so what is lost is NCCL's
    Near,     ///< close to that: a part of NCCL's own price is kept
    Guarded,  ///< the prices are for LL or LL128 in a size where the plugin never takes it anew
    Far       ///< all others
};
inline constexpr int kKinds = 4;

/// Times in us: [tree, ring][LL, LL128, Simple]; below zero where there is no such way.
struct Outcome {
    double time[2][3];
    double best = 0;
    double best_of[2] = {-1, -1};  ///< of tree and ring, with its best protocol
    Kind kind = Kind::Far;
    rdmatune::model::Choice nccl;  ///< what NCCL takes by its own prices
    rdmatune::model::Choice ours;  ///< what it takes after the plugin has re-priced its table
    rdmatune::model::Choice
        model;  ///< what the model would take by itself, NCCL's price left aside

    /// Time lost against the best, as a share of it.
    [[nodiscard]] double regret(rdmatune::model::Choice choice) const {
        return time[choice.algorithm][choice.protocol] / best - 1;
    }
    /// The same for the algorithm alone, each with its best protocol: against the better of the
    /// two.
    [[nodiscard]] double algorithmRegret(rdmatune::model::Choice choice) const {
        return best_of[choice.algorithm] / best - 1;
    }
};

/// Simulates all ways, and asks the plugin's own core, with a table by NCCL's documented formula.
[[nodiscard]] Outcome run(const Case& c);

/// One way of choosing, over many cases.
struct Regret {
    double sum = 0;
    double worst = 0;
    long above_15 = 0;  ///< cases that lost more than 15 %
    Case worst_case;

    void add(const Case& c, double regret);
};

/// The three ways of choosing; of each, the regret of [the algorithm alone, algorithm and
/// protocol].
struct Summary {
    long cases = 0;
    Regret nccl[2];
    Regret ours[2];
    Regret model[2];
    long worse_than_nccl =
        0;  ///< cases in which the plugin lost more than 1 % against NCCL's own choice

    void add(const Case& c, const Outcome& outcome);
    [[nodiscard]] double mean(const Regret& regret) const {
        return cases == 0 ? 0 : regret.sum / static_cast<double>(cases);
    }
};

[[nodiscard]] std::string describe(const Case& c);
[[nodiscard]] std::string describe(rdmatune::model::Choice choice);

/// The whole grid, or every `stride`-th case of it from `offset` on.
[[nodiscard]] std::vector<Case> grid(int stride, int offset);
/// Networks with one long edge or one slow node, up to 32 nodes; likewise.
[[nodiscard]] std::vector<Case> unevenGrid(int stride, int offset);

}  // namespace sweep
