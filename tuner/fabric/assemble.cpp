#include "tuner/fabric/assemble.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tuner/fabric/statistics.hpp"

namespace rdmatune::fabric {
namespace {

std::uint32_t whole(double value) {
    constexpr double kMost = 4e9;
    if (!(value > 0)) return 0;
    return static_cast<std::uint32_t>(std::clamp(std::round(value), 1.0, kMost));
}

bool isRing(const EdgeResult& result) {
    return result.edge.pattern == Pattern::Ring;
}

int sender(const EdgeResult& result) {
    return result.down ? result.edge.to : result.edge.from;
}

void addAlpha(const std::vector<EdgeResult>& edges, bool ring, PatternFigures& out) {
    std::vector<double> medians;
    for (const EdgeResult& result : edges)
        if (isRing(result) == ring && result.latency) medians.push_back(result.latency->median_us);
    if (medians.empty()) return;
    out.alpha_ns = whole(median(medians) * 1e3);
    out.alpha_worst_ns = whole(*std::max_element(medians.begin(), medians.end()) * 1e3);
}

void addBeta(const std::vector<double>& rates, PatternFigures& out) {
    if (rates.empty()) return;
    out.beta_mbps = whole(median(rates) * 1e3);
    out.beta_worst_mbps = whole(*std::min_element(rates.begin(), rates.end()) * 1e3);
}

/// How many streams each node sends in the tree pattern.
std::map<int, int> treeStreams(int nodes) {
    std::map<int, int> out;
    for (const Edge& edge : allEdges(nodes)) {
        if (edge.pattern == Pattern::Ring) continue;
        ++out[edge.from];
        ++out[edge.to];
    }
    return out;
}

}  // namespace

void addFigures(const std::vector<EdgeResult>& edges, int nodes, FabricProfile& profile) {
    addAlpha(edges, true, profile.ring);
    addAlpha(edges, false, profile.tree);
    std::vector<double> ring;
    std::vector<double> rail;
    std::map<int, std::pair<int, double>> tree;  // node -> streams, their sum
    for (const EdgeResult& result : edges) {
        if (isRing(result)) {
            if (result.gbs > 0) ring.push_back(result.gbs);
            if (result.rail_gbs > 0) rail.push_back(result.rail_gbs);
        } else if (result.gbs > 0) {
            auto& [count, sum] = tree[sender(result)];
            ++count;
            sum += result.gbs;
        }
    }
    addBeta(ring, profile.ring);
    profile.rail_mbps = whole(median(rail) * 1e3);
    // A node of which one stream is missing says nothing about what a node can send.
    std::vector<double> whole_nodes;
    for (const auto& [node, expected] : treeStreams(nodes))
        if (const auto at = tree.find(node); at != tree.end() && at->second.first == expected)
            whole_nodes.push_back(at->second.second);
    addBeta(whole_nodes, profile.tree);
}

void addSlowRail(double share, FabricProfile& profile) {
    for (PatternFigures* figures : {&profile.ring, &profile.tree})
        figures->beta_worst_mbps =
            std::min(figures->beta_worst_mbps, whole(figures->beta_mbps * share));
}

Coverage coverageOf(const std::vector<EdgeResult>& edges, int nodes) {
    Coverage out;
    int figures = 0;
    std::map<std::pair<int, std::pair<int, int>>, int> have;  // pattern and ends -> figures
    for (const EdgeResult& result : edges) {
        const int here = (result.latency ? 1 : 0) + (result.gbs > 0 ? 1 : 0);
        figures += here;
        have[{static_cast<int>(result.edge.pattern), {result.edge.from, result.edge.to}}] += here;
        if (!isRing(result)) continue;
        out.ring_latency += result.latency ? 1 : 0;
        out.ring_bandwidth += result.gbs > 0 ? 1 : 0;
    }
    int owed = 0;
    for (const Edge& edge : allEdges(nodes)) {
        const int of_edge = edge.pattern == Pattern::Ring ? 2 : 3;  // a tree edge streams both ways
        owed += of_edge;
        const auto at = have.find({static_cast<int>(edge.pattern), {edge.from, edge.to}});
        if (at == have.end() || at->second < of_edge) ++out.edges_missing;
    }
    out.share = owed > 0 ? std::min(1.0, static_cast<double>(figures) / owed) : 0;
    out.usable = nodes >= 2 && 2 * out.ring_latency >= nodes && 2 * out.ring_bandwidth >= nodes;
    return out;
}

}  // namespace rdmatune::fabric
