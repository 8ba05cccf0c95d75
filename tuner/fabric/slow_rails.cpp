#include "tuner/fabric/slow_rails.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tuner/fabric/statistics.hpp"

namespace rdmatune::fabric {
namespace {

/// A job has thousands of rails: at three standard deviations some of them would always be
/// suspected.
constexpr double kSpreads = 4;

bool usable(const EdgeResult& edge) {
    return edge.edge.pattern == Pattern::Ring && edge.rails.size() > 1;
}

/// The HCA that is a node's rail, as the agreement counts them; empty where that is not known.
std::string hcaOf(const Hello& hello, const Agreement& agreement, int rail) {
    const auto wanted = static_cast<std::size_t>(rail);
    std::size_t position = 0;
    for (const HcaFact& hca : hello.facts.hcas) {
        if (hca.layer != toString(agreement.link_layer)) continue;
        if (agreement.rails_by_subnet) {
            if (wanted < agreement.subnets.size() && hca.subnet == agreement.subnets[wanted])
                return hca.label;
        } else if (position++ == wanted) {
            return hca.label;
        }
    }
    return {};
}

}  // namespace

std::vector<SlowRail> findSlowRails(const std::vector<EdgeResult>& edges, int nodes,
                                    const Thresholds& limits) {
    std::vector<double> rates;
    for (const EdgeResult& edge : edges)
        if (usable(edge))
            for (const double rate : edge.rails)
                if (rate > 0) rates.push_back(rate);
    if (rates.empty()) return {};
    const double spread = robustSpread(rates);
    std::sort(rates.begin(), rates.end());
    const double others = rates[rates.size() - 1 - (rates.size() - 1) / 4];
    const double limit = std::min(limits.bandwidth_fraction * others, others - kSpreads * spread);

    std::map<std::pair<int, int>, double> slow;  // rail and sending node
    for (const EdgeResult& edge : edges) {
        if (!usable(edge)) continue;
        const auto below = [&](double rate) { return rate > 0 && rate < limit; };
        const auto many = std::count_if(edge.rails.begin(), edge.rails.end(), below);
        if (2 * static_cast<std::size_t>(many) > edge.rails.size()) continue;
        for (std::size_t rail = 0; rail < edge.rails.size(); ++rail)
            if (below(edge.rails[rail]))
                slow[{static_cast<int>(rail), edge.edge.from}] = edge.rails[rail];
    }
    std::vector<SlowRail> out;
    std::map<std::pair<int, int>, bool> explained;
    if (nodes > 2)
        for (const auto& [place, rate] : slow) {
            const auto [rail, node] = place;
            const auto before = slow.find({rail, (node + nodes - 1) % nodes});
            if (before == slow.end() || explained[before->first]) continue;
            explained[place] = explained[before->first] = true;
            out.push_back({rail, node, -1, std::min(rate, before->second), others});
        }
    for (const auto& [place, rate] : slow)
        if (!explained[place])
            out.push_back({place.first, place.second, (place.second + 1) % nodes, rate, others});
    std::stable_sort(out.begin(), out.end(),
                     [](const SlowRail& a, const SlowRail& b) { return a.gbs < b.gbs; });
    return out;
}

std::vector<SlowRail> slowInBoth(const std::vector<SlowRail>& first,
                                 const std::vector<SlowRail>& second) {
    std::vector<SlowRail> out;
    for (SlowRail slow : first) {
        const auto again = std::find_if(second.begin(), second.end(), [&](const SlowRail& other) {
            return slow.samePlace(other);
        });
        if (again == second.end()) continue;
        slow.gbs = std::max(slow.gbs, again->gbs);
        out.push_back(slow);
    }
    return out;
}

std::string describe(const SlowRail& slow, const std::vector<Hello>& members,
                     const Agreement& agreement) {
    const auto hca = [&](int node) {
        const Hello& hello = members[static_cast<std::size_t>(node)];
        const std::string name = hcaOf(hello, agreement, slow.rail);
        return name.empty() ? hello.host : hello.host + "'s " + name;
    };
    const std::string figures =
        fmt::format("{:.2f} GB/s where the other rails have {:.2f} GB/s", slow.gbs, slow.others);
    if (slow.other < 0)
        return fmt::format(
            "rail {}: {} is slow: {}; every ring and tree over all rails waits for it",
            slow.rail + 1, hca(slow.node), figures);
    return fmt::format(
        "rail {} is slow from {} to {}: {}; look at the cable, both ports and both "
        "HCAs",
        slow.rail + 1, hca(slow.node), hca(slow.other), figures);
}

}  // namespace rdmatune::fabric
