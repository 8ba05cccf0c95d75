#include "tuner/fabric/judge.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "tuner/fabric/statistics.hpp"

namespace rdmatune::fabric {
namespace {

/// The value that a quarter of the others reach or undercut.
double lowerQuartile(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[(values.size() - 1) / 4];
}
double upperQuartile(std::vector<double> values) {
    for (double& value : values) value = -value;
    return -lowerQuartile(std::move(values));
}

struct Normal {
    double min_us = 0;
    double median_us = 0;
    double gbs = 0;
};

/// How many times too slow; 1 when not suspicious.
double latencyBadness(const Latency& figure, const Normal& normal, const Thresholds& limits) {
    const auto beyond = [&](double value, double usual) {
        return usual > 0 && value > limits.latency_factor * usual &&
               value - usual > limits.latency_floor_us;
    };
    if (!beyond(figure.min_us, normal.min_us) || !beyond(figure.median_us, normal.median_us))
        return 1;
    return figure.median_us / normal.median_us;
}

double bandwidthBadness(double gbs, double normal, const Thresholds& limits) {
    if (gbs <= 0 || normal <= 0 || gbs >= limits.bandwidth_fraction * normal) return 1;
    return normal / gbs;
}

}  // namespace

Thresholds thresholdsFor(bool tcp, bool shared_machine, double latency_factor,
                         double bandwidth_fraction) {
    constexpr double kTcpFloorUs = 50;
    constexpr double kSharedFloorUs = 1000;
    constexpr double kTcpFraction = 0.5;
    constexpr double kSharedFraction = 0.25;
    constexpr double kVerbsFloorUs = 2;
    Thresholds out{latency_factor, bandwidth_fraction, tcp ? kTcpFloorUs : kVerbsFloorUs};
    if (tcp) out.bandwidth_fraction = std::min(bandwidth_fraction, kTcpFraction);
    if (!shared_machine) return out;
    out.bandwidth_fraction = std::min(bandwidth_fraction, kSharedFraction);
    out.latency_floor_us = tcp ? kSharedFloorUs : kTcpFloorUs;
    return out;
}

std::vector<Suspect> findSuspects(const std::vector<EdgeResult>& edges, const Thresholds& limits) {
    std::vector<double> minima;
    std::vector<double> medians;
    std::vector<double> rates;
    for (const EdgeResult& edge : edges) {
        if (edge.latency) {
            minima.push_back(edge.latency->min_us);
            medians.push_back(edge.latency->median_us);
        }
        // A tree's edges carry unequal loads by design; only the ring's are comparable.
        if (edge.edge.pattern == Pattern::Ring && edge.gbs > 0) rates.push_back(edge.gbs);
    }
    const Normal normal{lowerQuartile(minima), lowerQuartile(medians), upperQuartile(rates)};
    const double spread = robustSpread(rates);
    std::map<std::pair<int, int>, double> worst;
    for (const EdgeResult& edge : edges) {
        double badness = edge.latency ? latencyBadness(*edge.latency, normal, limits) : 1;
        // Three spreads: on a network that wanders by itself a wide step is no news.
        if (edge.edge.pattern == Pattern::Ring && edge.gbs < normal.gbs - 3 * spread)
            badness = std::max(badness, bandwidthBadness(edge.gbs, normal.gbs, limits));
        if (badness <= 1) continue;
        double& known = worst[std::minmax(edge.edge.from, edge.edge.to)];
        known = std::max(known, badness);
    }
    std::vector<Suspect> out;
    for (const auto& [ends, badness] : worst) out.push_back({ends.first, ends.second, badness});
    std::stable_sort(out.begin(), out.end(),
                     [](const Suspect& a, const Suspect& b) { return a.badness > b.badness; });
    return out;
}

std::vector<PairTest> planRetests(const std::vector<Suspect>& suspects,
                                  const std::vector<bool>& present, std::size_t most) {
    const int nodes = static_cast<int>(present.size());
    // Two nodes have one link and no third to ask.
    if (std::count(present.begin(), present.end(), true) < 3) return {};
    std::set<int> suspicious;
    for (const Suspect& suspect : suspects) suspicious.insert({suspect.from, suspect.to});
    std::vector<int> healthy;
    std::vector<int> anybody;
    for (int node = 0; node < nodes; ++node) {
        if (!present[static_cast<std::size_t>(node)]) continue;
        anybody.push_back(node);
        if (!suspicious.contains(node)) healthy.push_back(node);
    }
    std::vector<PairTest> tests;
    std::vector<std::set<int>> busy;  // who is taken, slot by slot
    std::set<std::pair<int, int>> planned;
    std::size_t turn = 0;
    const auto add = [&](int from, int to) {
        if (!planned.insert(std::minmax(from, to)).second) return;
        std::size_t slot = 0;
        while (slot < busy.size() && (busy[slot].contains(from) || busy[slot].contains(to))) ++slot;
        if (slot == busy.size()) busy.emplace_back();
        busy[slot].insert({from, to});
        tests.push_back({static_cast<int>(tests.size()), static_cast<int>(slot), from, to});
    };
    const auto addPartners = [&](int node, int not_with) {
        // Few nodes may be beyond suspicion: then anybody else has to do.
        std::vector<int> partners;
        for (const auto* choice : {&healthy, &anybody})
            for (std::size_t i = 0; i < choice->size() && partners.size() < 2; ++i) {
                const int partner = (*choice)[(turn + i) % choice->size()];
                const bool taken =
                    std::find(partners.begin(), partners.end(), partner) != partners.end();
                if (partner != node && partner != not_with && !taken) partners.push_back(partner);
            }
        turn += 2;
        for (const int partner : partners) add(node, partner);
    };
    for (const Suspect& suspect : suspects) {
        if (most-- == 0) break;
        const auto here = [&](int node) { return present[static_cast<std::size_t>(node)]; };
        if (!here(suspect.from) || !here(suspect.to)) continue;
        add(suspect.from, suspect.to);
        addPartners(suspect.from, suspect.to);
        addPartners(suspect.to, suspect.from);
    }
    // Pairs of healthy nodes in the slots where they are free show what is normal just then.
    const std::size_t slots = busy.size();
    for (std::size_t slot = 0; slot < slots && tests.size() > 0; ++slot) {
        std::vector<int> free;
        for (const int node : healthy)
            if (!busy[slot].contains(node)) free.push_back(node);
        for (std::size_t i = 0; i + 1 < free.size() && i < 4; i += 2) {
            if (!planned.insert(std::minmax(free[i], free[i + 1])).second) continue;
            busy[slot].insert({free[i], free[i + 1]});
            tests.push_back(
                {static_cast<int>(tests.size()), static_cast<int>(slot), free[i], free[i + 1]});
        }
    }
    return tests;
}

namespace {

/// What is normal in the retests: the better quarter, as in findSuspects.
Normal normalOf(const std::vector<PairResult>& retests) {
    std::vector<double> minima;
    std::vector<double> medians;
    std::vector<double> rates;
    for (const PairResult& pair : retests) {
        if (pair.latency) {
            minima.push_back(pair.latency->min_us);
            medians.push_back(pair.latency->median_us);
        }
        if (pair.gbs > 0) rates.push_back(pair.gbs);
    }
    return {lowerQuartile(minima), lowerQuartile(medians), upperQuartile(rates)};
}

struct Tested {
    const PairResult* pair = nullptr;
    double latency_badness = 1;
    double bandwidth_badness = 1;
};

double badnessOf(const Tested& test, bool by_latency) {
    return by_latency ? test.latency_badness : test.bandwidth_badness;
}

bool hasFigure(const Tested& test, bool by_latency) {
    return by_latency ? test.pair->latency.has_value() : test.pair->gbs > 0;
}

/// A verdict on the given tests if at least `least` of them have a figure and all of those are bad,
/// in the same respect.
bool allBad(const std::vector<Tested>& tests, std::size_t least, Verdict& out) {
    for (const bool by_latency : {true, false}) {
        std::vector<double> figures;
        bool all = true;
        for (const Tested& test : tests) {
            if (!hasFigure(test, by_latency)) continue;
            all = all && badnessOf(test, by_latency) > 1;
            figures.push_back(by_latency ? test.pair->latency->median_us : test.pair->gbs);
        }
        if (!all || figures.size() < least) continue;
        out.by_latency = by_latency;
        out.figure = median(figures);
        out.partners = static_cast<int>(figures.size());
        return true;
    }
    return false;
}

/// Whether one of the tests, other than with `other`, has a good figure.
bool wellElsewhere(const std::vector<Tested>& tests, int other, bool by_latency) {
    return std::any_of(tests.begin(), tests.end(), [&](const Tested& test) {
        return test.pair->from != other && test.pair->to != other && hasFigure(test, by_latency) &&
               badnessOf(test, by_latency) <= 1;
    });
}

}  // namespace

std::vector<Verdict> judge(const std::vector<Suspect>& suspects,
                           const std::vector<PairResult>& retests, const Thresholds& limits) {
    const Normal normal = normalOf(retests);
    std::map<int, std::vector<Tested>> of_node;
    std::map<std::pair<int, int>, Tested> of_pair;
    for (const PairResult& pair : retests) {
        if (!pair.latency && pair.gbs <= 0) continue;
        const Tested tested{&pair, pair.latency ? latencyBadness(*pair.latency, normal, limits) : 1,
                            bandwidthBadness(pair.gbs, normal.gbs, limits)};
        of_node[pair.from].push_back(tested);
        of_node[pair.to].push_back(tested);
        of_pair[std::minmax(pair.from, pair.to)] = tested;
    }
    const auto othersThan = [&](int node, int other, bool by_latency) {
        std::vector<double> figures;
        for (const PairResult& pair : retests) {
            const bool touches = pair.from == node || pair.to == node;
            if (touches && (other < 0 || pair.from == other || pair.to == other)) continue;
            if (by_latency && pair.latency) figures.push_back(pair.latency->median_us);
            if (!by_latency && pair.gbs > 0) figures.push_back(pair.gbs);
        }
        return median(std::move(figures));
    };
    std::vector<Verdict> out;
    std::set<std::pair<int, bool>> bad;  // node, and whether by latency
    std::set<int> asked;
    for (const Suspect& suspect : suspects) asked.insert({suspect.from, suspect.to});
    for (const int node : asked) {
        const auto tests = of_node.find(node);
        Verdict verdict;
        // One slow partner may be the partner's fault.
        if (tests == of_node.end() || !allBad(tests->second, 2, verdict)) continue;
        verdict.node = node;
        verdict.others = othersThan(node, -1, verdict.by_latency);
        out.push_back(verdict);
        bad.insert({node, verdict.by_latency});
    }
    for (const Suspect& suspect : suspects) {
        const auto again = of_pair.find(std::minmax(suspect.from, suspect.to));
        Verdict verdict;
        if (again == of_pair.end() || !allBad({again->second}, 1, verdict)) continue;
        // What an end is slow in by itself is no matter of this link.
        if (bad.contains({suspect.from, verdict.by_latency}) ||
            bad.contains({suspect.to, verdict.by_latency}))
            continue;
        // Without a good figure of both ends elsewhere it cannot be told from a bad node.
        if (!wellElsewhere(of_node[suspect.from], suspect.to, verdict.by_latency) ||
            !wellElsewhere(of_node[suspect.to], suspect.from, verdict.by_latency))
            continue;
        verdict.kind = Verdict::Kind::Link;
        verdict.node = suspect.from;
        verdict.other = suspect.to;
        verdict.others = othersThan(suspect.from, suspect.to, verdict.by_latency);
        out.push_back(verdict);
    }
    const auto badness = [](const Verdict& v) {
        if (v.figure <= 0 || v.others <= 0) return 1.0;
        return v.by_latency ? v.figure / v.others : v.others / v.figure;
    };
    std::stable_sort(out.begin(), out.end(), [&](const Verdict& a, const Verdict& b) {
        return a.kind != b.kind ? a.kind == Verdict::Kind::Node : badness(a) > badness(b);
    });
    return out;
}

std::string describe(const Verdict& verdict, const std::vector<std::string>& hosts) {
    const auto name = [&](int node) { return hosts[static_cast<std::size_t>(node)]; };
    char figures[160];
    if (verdict.by_latency)
        std::snprintf(figures, sizeof figures, "%.1f us one way where the others have %.1f us",
                      verdict.figure, verdict.others);
    else
        std::snprintf(figures, sizeof figures, "%.2f GB/s where the others have %.2f GB/s",
                      verdict.figure, verdict.others);
    if (verdict.kind == Verdict::Kind::Link)
        return "the link between " + name(verdict.node) + " and " + name(verdict.other) +
               " is slow: " + figures + "; both nodes are well with other partners";
    return "node " + name(verdict.node) + " is slow: " + figures + ", with each of " +
           std::to_string(verdict.partners) + " partners";
}

}  // namespace rdmatune::fabric
