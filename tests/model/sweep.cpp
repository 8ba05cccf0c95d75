#include "sweep.hpp"

#include <algorithm>
#include <cstdio>

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
    figures.alpha_ns = figures.alpha_worst_ns = static_cast<std::uint32_t>(network.alpha_us * 1e3);
    figures.beta_mbps = figures.beta_worst_mbps =
        static_cast<std::uint32_t>(network.beta_gbs * 1e3);
    profile.ring = profile.tree = figures;
    profile.complete = true;
    return profile;
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
    for (const auto& row : outcome.time)
        for (const double time : row)
            if (time >= 0 && (outcome.best < 0 || time < outcome.best)) outcome.best = time;

    model::Shape shape;
    shape.size = {static_cast<std::uint32_t>(c.nodes * c.ranks_per_node),
                  static_cast<std::uint32_t>(c.nodes)};
    shape.rails = static_cast<std::uint32_t>(c.ranks_per_node);
    shape.rail_mbps = static_cast<std::uint32_t>(c.rail_gbs * 1e3);
    const model::Collective what = collectiveOf(c.what);
    const auto bytes = static_cast<std::uint64_t>(c.bytes);
    float table[2][model::kProtocols];
    asTable(ncclPrices(shape, model::kDefaultLatencies, what, bytes), table);
    outcome.nccl = model::cheapest(&table[0][0], 2, model::kProtocols);
    model::Pricing pricing;
    const bool priced = makePricing(profileOf(c, network), shape.size, pricing) == model::Aside::No;
    prepareCurves(pricing);
    outcome.model = cheapest(modelPrices(pricing, shape, what, bytes));
    if (priced) reprice(pricing, what, bytes, 1, &table[0][0], 2, model::kProtocols);
    outcome.ours = model::cheapest(&table[0][0], 2, model::kProtocols);
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
    nccl.add(c, outcome.regret(outcome.nccl));
    ours.add(c, outcome.regret(outcome.ours));
    model.add(c, outcome.regret(outcome.model));
    if (outcome.regret(outcome.ours) > outcome.regret(outcome.nccl) + 0.01) ++worse_than_nccl;
}

std::string describe(const Case& c) {
    static constexpr const char* kNames[] = {"allreduce", "allgather", "reducescatter"};
    char text[160];
    std::snprintf(
        text, sizeof text,
        "%s of %.0f bytes, %d x %d ranks, alpha %.0f us, beta %.1f GB/s per rail (%.0f %% of %.1f)",
        kNames[static_cast<int>(c.what)], c.bytes, c.nodes, c.ranks_per_node, c.alpha_us,
        c.rail_gbs * c.beta_share, c.beta_share * 100, c.rail_gbs);
    return text;
}

std::string describe(model::Choice choice) {
    if (choice.algorithm < 0) return "none";
    return std::string(model::kAlgorithmNames[choice.algorithm]) + "/" +
           model::kProtocolNames[choice.protocol];
}

std::vector<Case> grid(int stride) {
    std::vector<Case> cases;
    long number = 0;
    for (const auto what : {simulation::Collective::AllReduce, simulation::Collective::AllGather,
                            simulation::Collective::ReduceScatter})
        for (const int nodes : {2, 3, 4, 8, 16, 32, 64, 128, 256})
            for (const int ranks : {1, 4, 8})
                for (const double rail : {12.5, 25.0, 50.0, 100.0})
                    for (const double share : {1.0, 0.75, 0.4})
                        for (const double alpha : {1.0, 2.0, 5.0, 10.0, 30.0, 100.0})
                            for (double bytes = 1024; bytes < 9e9; bytes *= 2)
                                if (number++ % stride == 0)
                                    cases.push_back(
                                        {what, nodes, ranks, rail, share, alpha, bytes});
    return cases;
}

}  // namespace sweep
