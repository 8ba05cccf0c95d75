// The model against measurements that others have published. They leave much unsaid, so this is
// read by people; nothing is fitted to it.
#include "published.hpp"

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tuner/model/explain.hpp"

namespace published {
namespace {

using rdmatune::FabricProfile;
using namespace rdmatune::model;

using Row = std::map<std::string, std::string>;

std::vector<std::string> fieldsOf(const std::string& line) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            fields.emplace_back();
        else
            fields.back() += c;
    }
    return fields;
}

std::vector<Row> readCsv(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    std::vector<Row> rows;
    if (!std::getline(in, line)) return rows;
    if (line.ends_with('\r')) line.pop_back();
    const std::vector<std::string> names = fieldsOf(line);
    while (std::getline(in, line)) {
        if (line.ends_with('\r')) line.pop_back();
        const std::vector<std::string> fields = fieldsOf(line);
        Row row;
        for (std::size_t i = 0; i < names.size() && i < fields.size(); ++i)
            row[names[i]] = fields[i];
        rows.push_back(row);
    }
    return rows;
}

/// A row's field; empty where the row has none.
std::string at(const Row& row, const char* name) {
    const auto it = row.find(name);
    return it == row.end() ? std::string() : it->second;
}

/// A cluster as far as a source describes it. GB/s of one rail.
struct Cluster {
    std::uint32_t nodes = 2;
    std::uint32_t gpus = 8;
    std::uint32_t rails = 8;
    double rail_gbs = 50;
    double alpha_us = 1;
};

struct Prepared {
    Pricing pricing;
    Shape shape;
};

Prepared prepare(const Cluster& c) {
    FabricProfile profile;
    profile.nodes = profile.nodes_measured = c.nodes;
    profile.rails = c.rails;
    profile.rail_nominal_mbps = static_cast<std::uint32_t>(c.rail_gbs * 1e3);
    profile.ring.alpha_ns = static_cast<std::uint32_t>(c.alpha_us * 1e3);
    profile.ring.beta_mbps = static_cast<std::uint32_t>(c.rail_gbs * c.rails * 1e3);
    profile.tree = profile.ring;
    Prepared prepared;
    (void)makePricing(profile, {c.nodes * c.gpus, c.nodes}, prepared.pricing);
    prepareOctaves(prepared.pricing);
    prepared.shape = shapeOf(prepared.pricing);
    return prepared;
}

std::string sizeText(std::uint64_t bytes) {
    char text[24];
    formatSize(bytes, text);
    return text;
}

/// Winners of ring and tree by size, on two nodes.
void compareWinners(const std::string& path) {
    std::printf(
        "\n%s\n  2 x 8 GPUs (RCCL). Not stated: the fabric's latency; taken as 2, 5 and 10 us. "
        "Only winners are given, so "
        "no regret.\n",
        path.c_str());
    const std::vector<Row> rows = readCsv(path);
    for (const double alpha : {2.0, 5.0, 10.0}) {
        Cluster cluster;
        cluster.alpha_us = alpha;
        const Prepared p = prepare(cluster);
        int cases = 0;
        int ours = 0;
        int nccl = 0;
        for (const Row& row : rows) {
            if (at(row, "nNodes") != "2" || at(row, "collective_type") != "allreduce") continue;
            for (std::uint64_t bytes = std::stoull(at(row, "min_bytes"));
                 bytes <= std::stoull(at(row, "max_bytes")); bytes *= 2) {
                const Explained e = explain(p.pricing, p.shape, Collective::AllReduce, bytes);
                ++cases;
                ours += at(row, "algorithm") == kAlgorithmNames[e.choice.algorithm] ? 1 : 0;
                nccl += at(row, "algorithm") == kAlgorithmNames[e.nccl_choice.algorithm] ? 1 : 0;
            }
        }
        std::printf(
            "  alpha %4.0f us: ring or tree as measured in %d of %d sizes (NCCL's formula by "
            "itself: %d); ring from %s\n",
            alpha, ours, cases, nccl,
            sizeText(ringFrom(p.pricing, p.shape, Collective::AllReduce, true)).c_str());
    }
}

/// Times of ring and tree over a socket, one rank on each of two "nodes".
void compareSocket(const std::string& path) {
    std::printf(
        "\n%s\n  2 x 1 ranks on one host over a socket, every operation at least 4.3 ms. Not "
        "stated: latency and "
        "bandwidth; taken as 2000 us and, from its own large messages, 2.6 GB/s.\n",
        path.c_str());
    std::map<std::uint64_t, std::map<std::string, double>> measured;
    for (const Row& row : readCsv(path))
        if (at(row, "algo") != "default" && !at(row, "bytes").empty())
            measured[std::stoull(at(row, "bytes"))][at(row, "algo") + "/" + at(row, "proto")] =
                std::stod(at(row, "time_us"));
    Cluster cluster{2, 1, 1, 2.6, 2000};
    const Prepared p = prepare(cluster);
    double sum = 0;
    double worst = 0;
    int agreed = 0;
    for (const auto& [bytes, times] : measured) {
        FamilyPrices prices = explain(p.pricing, p.shape, Collective::AllReduce, bytes).priced;
        prices.price[0][1] = prices.price[1][1] = -1;  // LL128 was not measured
        const Choice choice = cheapest(prices);
        const std::string name = std::string(choice.algorithm == 0 ? "Tree/" : "Ring/") +
                                 (choice.protocol == 0 ? "LL" : "Simple");
        double best = times.begin()->second;
        for (const auto& [way, us] : times) best = us < best ? us : best;
        if (!times.contains(name)) continue;
        const double regret = times.at(name) / best - 1;
        sum += regret;
        worst = regret > worst ? regret : worst;
        agreed += regret < 0.03 ? 1 : 0;
    }
    std::printf(
        "  within 3 %% of the best in %d of %zu sizes; regret %.1f %% on average, %.1f %% at "
        "worst\n",
        agreed, measured.size(), 100 * sum / static_cast<double>(measured.size()), 100 * worst);
}

/// A vendor's own regions: where ring takes over for a number of ranks.
void compareRegions(const std::string& path) {
    std::printf(
        "\n%s\n  8 GPUs and 16 rails of 25 GB/s per node. Not stated: the latency that the regions "
        "were drawn for; the "
        "vendor's plugin tells NCCL 35 to 150 us for its platforms.\n",
        path.c_str());
    // The lower edge of the region of ring with LL128, vertices (bytes, ranks).
    for (const Row& row : readCsv(path)) {
        if (at(row, "condition") != "nRanks == 8 * nNodes" || at(row, "coll") != "AllReduce" ||
            at(row, "algo") != "RING" || at(row, "proto") != "LL128")
            continue;
        const std::string bytes = at(row, "bytes");
        const std::string ranks = at(row, "ranks");
        if (bytes.empty() || ranks.empty()) continue;
        if (bytes.find_first_not_of("0123456789") != std::string::npos ||
            ranks.find_first_not_of("0123456789") != std::string::npos)
            continue;
        std::printf("  vertex: ring from %s at %s ranks; here:",
                    sizeText(std::stoull(bytes)).c_str(), ranks.c_str());
        const auto nodes = static_cast<std::uint32_t>((std::stoul(ranks) + 7) / 8);
        if (nodes < 2) continue;
        for (const double alpha : {10.0, 20.0, 35.0}) {
            const Prepared p = prepare({nodes, 8, 16, 25, alpha});
            const std::uint64_t from = ringFrom(p.pricing, p.shape, Collective::AllReduce, true);
            std::printf(" %s (%.0f us)", from == 0 ? "never" : sizeText(from).c_str(), alpha);
        }
        const Prepared p = prepare({nodes, 8, 16, 25, 10});
        const std::uint64_t nccl = ringFrom(p.pricing, p.shape, Collective::AllReduce, false);
        std::printf("; NCCL's formula: %s\n", nccl == 0 ? "never" : sizeText(nccl).c_str());
    }
}

}  // namespace

void compare(const std::string& folder) {
    compareWinners(folder + "/mi355x-measured-winners-1-2nodes.csv");
    compareSocket(folder + "/socket-2rank-ring-tree-ll-simple.csv");
    compareRegions(folder + "/aws-p5en-regions.csv");
    std::printf(
        "\n%s/l40s-1node-ring-tree-proto.csv\n  one node: nothing crosses a network, and the "
        "plugin leaves NCCL alone.\n",
        folder.c_str());
}

}  // namespace published
