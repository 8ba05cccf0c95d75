#include <cmath>

#include "tuner/fabric/assemble.hpp"
#include "tuner/fabric/conductor_steps.hpp"
#include "tuner/fabric/statistics.hpp"

namespace rdmatune::fabric {

void Conductor::assemble() {
    constexpr std::size_t kMostLost = 4;
    std::size_t shown = 0;
    for (const std::string& text : lost_) {
        if (shown++ < kMostLost) out_.notes.push_back(text);
    }
    if (lost_.size() > kMostLost)
        out_.notes.push_back(std::to_string(lost_.size() - kMostLost) + " more connections failed");
    for (const std::string& line : crew_.complaints())
        if (const auto at = line.find("rdma-tune: ");
            at != std::string::npos && noted_.insert(line).second)
            out_.notes.push_back(line.substr(at + 11));
    if (!out_.reason.empty() || out_.members.size() < 2) return;

    const int nodes = static_cast<int>(out_.members.size());
    std::vector<std::string> hosts;
    for (const Hello& hello : out_.members) hosts.push_back(hello.host);
    FabricProfile& profile = out_.profile;
    profile.nodes = static_cast<std::uint32_t>(assignment_.step_nodes);
    profile.transport = kind_;
    profile.gdr = gdr_;
    profile.rails = static_cast<std::uint32_t>(rails_);
    profile.rail_nominal_mbps = static_cast<std::uint32_t>(std::lround(median(nominal_gbs_) * 1e3));
    addFigures(out_.edges, nodes, profile);
    const Coverage coverage = coverageOf(out_.edges, nodes);
    std::set<int> measured;
    for (const EdgeResult& edge : out_.edges)
        if (edge.latency || edge.gbs > 0) measured.insert({edge.edge.from, edge.edge.to});
    profile.nodes_measured = static_cast<std::uint32_t>(measured.size());
    profile.complete = coverage.edges_missing == 0 && nodes == assignment_.agents;
    for (const Verdict& verdict : out_.verdicts) {
        out_.notes.push_back(describe(verdict, hosts));
        if (verdict.kind != Verdict::Kind::Node || profile.slow_node[0] != '\0') continue;
        const std::string& host = hosts[static_cast<std::size_t>(verdict.node)];
        host.copy(profile.slow_node, std::min(host.size(), kProfileHostMax - 1));
    }
    for (const SlowRail& slow : out_.slow_rails) {
        out_.notes.push_back(describe(slow, out_.members, out_.agreement));
        addSlowRail(slow.gbs / slow.others, profile);
        if (slow.other >= 0 || profile.slow_node[0] != '\0') continue;
        const std::string& host = hosts[static_cast<std::size_t>(slow.node)];
        host.copy(profile.slow_node, std::min(host.size(), kProfileHostMax - 1));
    }
    assignment_.rules.copy(profile.rules, std::min(assignment_.rules.size(), kProfileRulesMax - 1));
    if (!coverage.usable) {
        std::string first;
        for (const EdgeResult& edge : out_.edges)
            if (first.empty() && !edge.error.empty()) first = edge.error;
        out_.reason = "too little could be measured: latency of " +
                      std::to_string(coverage.ring_latency) + " and bandwidth of " +
                      std::to_string(coverage.ring_bandwidth) + " of the ring's " +
                      std::to_string(nodes) + " edges" + (first.empty() ? "" : " (" + first + ")");
        return;
    }
    if (coverage.edges_missing > 0)
        out_.notes.push_back("incomplete: " + std::to_string(coverage.edges_missing) + " of " +
                             std::to_string(allEdges(nodes).size()) + " edges have no figure");
    out_.usable = true;
}

}  // namespace rdmatune::fabric
