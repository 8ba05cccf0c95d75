#include "sweep.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "local.hpp"

namespace sweep {

using rdmatune::FabricProfile;
using rdmatune::PatternFigures;
namespace model = rdmatune::model;

namespace {

model::Collective collectiveOf(simulation::Collective what) {
    switch (what) {
        case simulation::Collective::AllReduce:
            return model::Collective::AllReduce;
        case simulation::Collective::AllGather:
            return model::Collective::AllGather;
        case simulation::Collective::ReduceScatter:
            return model::Collective::ReduceScatter;
    }
    return model::Collective::AllReduce;
}

/// What our own measuring would report of this network.
FabricProfile profileOf(const Case& c, const simulation::Network& network) {
    FabricProfile profile;
    profile.nodes = profile.nodes_measured = static_cast<std::uint32_t>(c.nodes);
    profile.rails = static_cast<std::uint32_t>(c.ranks_per_node);
    profile.rail_nominal_mbps = static_cast<std::uint32_t>(c.rail_gbs * 1e3);
    PatternFigures figures;
    const double worst_alpha = c.worst_alpha_us > 0 ? c.worst_alpha_us : network.alpha_us;
    const double worst_beta = network.beta_gbs * (c.worst_share > 0 ? c.worst_share : 1);
    figures.alpha_ns = static_cast<std::uint32_t>(network.alpha_us * 1e3);
    figures.alpha_worst_ns = static_cast<std::uint32_t>(worst_alpha * 1e3);
    figures.beta_mbps = static_cast<std::uint32_t>(network.beta_gbs * 1e3);
    figures.beta_worst_mbps = static_cast<std::uint32_t>(worst_beta * 1e3);
    profile.ring = profile.tree = figures;
    profile.complete = true;
    return profile;
}

/// Whether the plugin's guard stands before this choice.
bool isGuarded(model::Choice choice, model::Choice nccl, const Case& c) {
    const auto protocol = static_cast<model::Protocol>(choice.protocol);
    if (choice.protocol == nccl.protocol || protocol == model::Protocol::Simple) return false;
    const bool ll = protocol == model::Protocol::LL;
    double largest = static_cast<double>(ll ? model::kLlLargest : model::kLl128Largest);
    const auto piece = static_cast<double>(ll ? model::kLlRingPiece : model::kLl128RingPiece);
    if (choice.algorithm == static_cast<int>(model::Algorithm::Ring))
        largest = std::max(largest, piece * c.nodes * c.ranks_per_node);
    return c.bytes > largest;
}

}  // namespace

Outcome run(const Case& c) {
    // What a healthy rail carries of its link rate.
    constexpr double kPayload = 0.96;
    simulation::Network network;
    network.nodes = c.nodes;
    network.ranks_per_node = c.ranks_per_node;
    network.alpha_us = c.alpha_us;
    network.beta_gbs = c.rail_gbs * kPayload * c.beta_share * c.ranks_per_node;
    if (c.worst_alpha_us > 0) {
        network.edge_alpha_us[{0, 1}] = c.worst_alpha_us;
        network.edge_alpha_us[{1, 0}] = c.worst_alpha_us;
    }
    if (c.worst_share > 0) network.node_beta_gbs[c.nodes / 2] = network.beta_gbs * c.worst_share;
    const simulation::Cluster cluster{c.nodes, c.ranks_per_node, c.rail_gbs};

    Outcome outcome;
    outcome.best = -1;
    for (int p = 0; p < 3; ++p) {
        const auto protocol = static_cast<simulation::Protocol>(p);
        outcome.time[0][p] = c.what == simulation::Collective::AllReduce
                                 ? treeTime(network, localOfTree(cluster, protocol), c.bytes)
                                 : -1;
        outcome.time[1][p] = ringTime(network, localOfRing(cluster, protocol), c.what, c.bytes);
    }
    const auto keepLeast = [](double& least, double time) {
        if (time >= 0 && (least < 0 || time < least)) least = time;
    };
    for (int a = 0; a < 2; ++a)
        for (const double time : outcome.time[a]) {
            keepLeast(outcome.best_of[a], time);
            keepLeast(outcome.best, time);
        }

    model::Shape shape;
    shape.size = {static_cast<std::uint32_t>(c.nodes * c.ranks_per_node),
                  static_cast<std::uint32_t>(c.nodes)};
    shape.rails = static_cast<std::uint32_t>(c.ranks_per_node);
    shape.rail_mbps = static_cast<std::uint32_t>(c.rail_gbs * 1e3);
    const model::Collective what = collectiveOf(c.what);
    const auto bytes = static_cast<std::uint64_t>(c.bytes);
    float table[2][model::kProtocols];
    const model::FamilyPrices prices = ncclPrices(shape, model::kDefaultLatencies, what, bytes);
    asTable(prices, table);
    outcome.nccl = model::cheapest(&table[0][0], 2, model::kProtocols);
    model::Pricing pricing;
    const bool priced = makePricing(profileOf(c, network), shape.size, pricing) == model::Aside::No;
    prepareOctaves(pricing);
    outcome.model = cheapest(modelPrices(pricing, shape, what, bytes));
    if (priced) reprice(pricing, what, bytes, 1, &table[0][0], 2, model::kProtocols);
    outcome.ours = model::cheapest(&table[0][0], 2, model::kProtocols);
    if (!pricing.corrects)
        outcome.kind = Kind::Neutral;
    else if (pricing.kept != 0)
        outcome.kind = Kind::Near;
    else if (isGuarded(cheapest(measuredPrices(pricing, prices, what, bytes)), outcome.nccl, c))
        outcome.kind = Kind::Guarded;
    return outcome;
}

void Regret::add(const Case& c, double regret) {
    sum += regret;
    if (regret > 0.15) ++above_15;
    if (regret > worst) {
        worst = regret;
        worst_case = c;
    }
}

void Summary::add(const Case& c, const Outcome& outcome) {
    ++cases;
    const auto both = [&](Regret(&regret)[2], model::Choice choice) {
        regret[0].add(c, outcome.algorithmRegret(choice));
        regret[1].add(c, outcome.regret(choice));
    };
    both(nccl, outcome.nccl);
    both(ours, outcome.ours);
    both(model, outcome.model);
    if (outcome.regret(outcome.ours) > outcome.regret(outcome.nccl) + 0.01) ++worse_than_nccl;
}

std::string describe(const Case& c) {
    static constexpr const char* kNames[] = {"allreduce", "allgather", "reducescatter"};
    char text[240];
    std::snprintf(
        text, sizeof text,
        "%s of %.0f bytes, %d x %d ranks, alpha %.0f us, beta %.1f GB/s per rail (%.0f %% of %.1f)",
        kNames[static_cast<int>(c.what)], c.bytes, c.nodes, c.ranks_per_node, c.alpha_us,
        c.rail_gbs * c.beta_share, c.beta_share * 100, c.rail_gbs);
    std::string all = text;
    if (c.worst_alpha_us > 0) {
        std::snprintf(text, sizeof text, ", one edge %.0f us", c.worst_alpha_us);
        all += text;
    }
    if (c.worst_share > 0) {
        std::snprintf(text, sizeof text, ", one node %.0f %%", 100 * c.worst_share);
        all += text;
    }
    return all;
}

std::string describe(model::Choice choice) {
    if (choice.algorithm < 0) return "none";
    return std::string(model::kAlgorithmNames[choice.algorithm]) + "/" +
           model::kProtocolNames[choice.protocol];
}

namespace {

constexpr simulation::Collective kCollectives[] = {simulation::Collective::AllReduce,
                                                   simulation::Collective::AllGather,
                                                   simulation::Collective::ReduceScatter};
constexpr double kRails[] = {12.5, 25.0, 50.0, 100.0};
constexpr double kShares[] = {1.0, 0.75, 0.4};
constexpr double kAlphas[] = {1.0, 2.0, 5.0, 10.0, 30.0, 100.0};

/// Every `stride`-th of what is offered.
class Picker {
  public:
    Picker(int stride, int offset) : stride_(stride), offset_(offset) {}
    void offer(const Case& c) {
        if (number_++ % stride_ == offset_) cases_.push_back(c);
    }
    [[nodiscard]] std::vector<Case> take() { return std::move(cases_); }

  private:
    long stride_;
    long offset_;
    long number_ = 0;
    std::vector<Case> cases_;
};

}  // namespace

std::vector<Case> grid(int stride, int offset) {
    Picker picker(stride, offset);
    for (const auto what : kCollectives)
        for (const int nodes : {2, 3, 4, 8, 16, 32, 64, 128, 256})
            for (const int ranks : {1, 4, 8})
                for (const double rail : kRails)
                    for (const double share : kShares)
                        for (const double alpha : kAlphas)
                            for (double bytes = 1024; bytes < 9e9; bytes *= 2)
                                picker.offer({what, nodes, ranks, rail, share, alpha, bytes});
    return picker.take();
}

std::vector<Case> unevenGrid(int stride, int offset) {
    Picker picker(stride, offset);
    for (const auto what : kCollectives)
        for (const int nodes : {2, 3, 4, 8, 16, 32})
            for (const int ranks : {1, 4, 8})
                for (const double rail : kRails)
                    for (const double alpha : kAlphas)
                        for (double bytes = 1024; bytes < 9e9; bytes *= 2)
                            for (const double longer : {5.0, 50.0, 0.0}) {
                                Case c{what, nodes, ranks, rail, 1.0, alpha, bytes};
                                c.worst_alpha_us = longer > 0 ? alpha + longer : 0;
                                c.worst_share = longer > 0 ? 0 : 0.5;
                                picker.offer(c);
                            }
    return picker.take();
}

}  // namespace sweep
