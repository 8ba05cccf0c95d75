// Tables as NCCL passes them: made by its documented formula for a few clusters, and, where they
// are at hand, recorded ones.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tuner/model/nccl_price.hpp"

namespace rdmatune::model {

inline constexpr std::uint32_t kRailsOfTests = 8;

/// float[7][3], -1 where NCCL has no such entry.
struct Table {
    float cost[kAlgorithms][kProtocols];
    Table() {
        for (auto& row : cost)
            for (float& us : row) us = -1;
    }
    [[nodiscard]] float* data() { return &cost[0][0]; }
    [[nodiscard]] Choice choice() const { return cheapest(&cost[0][0], kAlgorithms, kProtocols); }
    bool operator==(const Table&) const = default;
};

/// A profile of `nodes` nodes with the same figures for ring and tree; us and GB/s of one rail.
inline FabricProfile profileOf(std::uint32_t nodes, double alpha, double beta, double nominal,
                               std::uint32_t rails = kRailsOfTests) {
    FabricProfile p;
    p.nodes = p.nodes_measured = nodes;
    p.rails = rails;
    p.rail_nominal_mbps = static_cast<std::uint32_t>(nominal * 1e3);
    p.ring.alpha_ns = p.ring.alpha_worst_ns = static_cast<std::uint32_t>(alpha * 1e3);
    p.ring.beta_mbps = p.ring.beta_worst_mbps = static_cast<std::uint32_t>(beta * rails * 1e3);
    p.tree = p.ring;
    p.complete = true;
    return p;
}

/// The network that NCCL's constants stand for.
inline FabricProfile assumedProfile(std::uint32_t nodes, double nominal,
                                    std::uint32_t rails = kRailsOfTests) {
    return profileOf(nodes, static_cast<double>(kReferenceAlphaNs) / 1e3,
                     nominal * static_cast<double>(kHealthyShare) / 1e3, nominal, rails);
}

inline Pricing pricingOf(const FabricProfile& profile, CommSize size) {
    Pricing pricing;
    (void)makePricing(profile, size, pricing);
    prepareOctaves(pricing);
    return pricing;
}

inline Shape shapeOf(CommSize size, std::uint32_t rails, double nominal, Gpu gpu = Gpu::Hopper) {
    Shape shape;
    shape.size = size;
    shape.rails = rails;
    shape.rail_mbps = static_cast<std::uint32_t>(nominal * 1e3);
    shape.gpu = gpu;
    return shape;
}

inline Table tableOf(const Shape& shape, Collective what, std::uint64_t bytes) {
    Table table;
    float family[2][kProtocols];
    asTable(ncclPrices(shape, kDefaultLatencies, what, bytes), family);
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < kProtocols; ++p) table.cost[a][p] = family[a][p];
    return table;
}

/// One recorded table.
struct Recorded {
    std::string file;
    std::uint32_t nodes = 0;
    std::uint32_t gpus = 0;
    Collective what = Collective::AllReduce;
    std::uint64_t bytes = 0;
    Table table;
};

/// Every table of nccl-costs below RDMA_TUNE_CASES or ../shared/cases; empty when there is no such
/// folder.
inline std::vector<Recorded> recordedTables() {
    namespace fs = std::filesystem;
    const char* const given = std::getenv("RDMA_TUNE_CASES");
    const fs::path folder = fs::path(given != nullptr ? given : "../shared/cases") / "nccl-costs";
    std::map<std::string, Recorded> found;
    if (!fs::is_directory(folder)) return {};
    const std::map<std::string, Collective> collectives = {{"ar", Collective::AllReduce},
                                                           {"ag", Collective::AllGather},
                                                           {"rs", Collective::ReduceScatter},
                                                           {"bc", Collective::Broadcast},
                                                           {"red", Collective::Reduce}};
    const std::map<std::string, int> algorithms = {
        {"TREE", 0},      {"RING", 1}, {"COLLNET_DIRECT", 2}, {"COLLNET_CHAIN", 3}, {"NVLS", 4},
        {"NVLS_TREE", 5}, {"PAT", 6}};
    const std::map<std::string, int> protocols = {{"LL", 0}, {"LL128", 1}, {"SIMPLE", 2}};
    for (const auto& entry : fs::directory_iterator(folder)) {
        std::ifstream in(entry.path());
        std::string line;
        std::getline(in, line);
        while (std::getline(in, line)) {
            std::stringstream fields(line);
            std::string f[8];
            for (std::string& field : f) std::getline(fields, field, ',');
            Recorded& r = found[entry.path().filename().string() + " " + f[3] + " " + f[4]];
            r.file = entry.path().filename().string();
            r.nodes = static_cast<std::uint32_t>(std::stoul(f[0]));
            r.gpus = static_cast<std::uint32_t>(std::stoul(f[1]));
            r.what = collectives.at(f[3]);
            r.bytes = std::stoull(f[4]);
            r.table.cost[algorithms.at(f[5])][protocols.at(f[6])] = std::stof(f[7]);
        }
    }
    std::vector<Recorded> all;
    for (auto& [name, recorded] : found) all.push_back(recorded);
    return all;
}

}  // namespace rdmatune::model
