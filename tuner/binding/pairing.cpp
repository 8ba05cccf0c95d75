#include "tuner/binding/pairing.hpp"

#include <algorithm>

#include "tuner/binding/spread.hpp"

namespace rdmatune {
namespace {

Distance nearest(const std::vector<Distance>& row, const std::vector<int>& usable) {
    auto best = Distance::Unknown;
    for (const int hca : usable) best = std::min(best, row[hca]);
    return best;
}

long long totalDistance(const std::vector<std::vector<Distance>>& distance,
                        const std::vector<int>& usable) {
    long long sum = 0;
    for (const auto& row : distance) sum += static_cast<int>(nearest(row, usable));
    return sum;
}

std::vector<int> upTo(std::size_t count) {
    std::vector<int> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<int>(i);
    return out;
}

/// The anchors of which no distance is known while others' are: a matrix that was cut. None where
/// nothing is known of anybody.
std::vector<bool> blindAnchors(const std::vector<std::vector<Distance>>& distance,
                               const std::vector<int>& usable) {
    std::vector<bool> out;
    for (const auto& row : distance) out.push_back(nearest(row, usable) == Distance::Unknown);
    if (std::ranges::find(out, false) == out.end()) out.assign(out.size(), false);
    return out;
}

/// The order in which blind anchors choose: HCAs that are known to be near some anchor before
/// those that are far from all that is known. It makes no difference to the others.
std::vector<int> nearFirst(const std::vector<std::vector<int>>& anchors_near,
                           const std::vector<bool>& blind) {
    auto out = upTo(anchors_near.size());
    std::ranges::stable_partition(out, [&](int h) {
        return std::ranges::any_of(anchors_near[h], [&](int a) { return !blind[a]; });
    });
    return out;
}

}  // namespace

Pairing pairUp(const std::vector<std::vector<Distance>>& distance, const std::vector<int>& usable) {
    Pairing out;
    out.hcas.resize(distance.size());
    if (usable.empty()) return out;
    // From here on HCAs are numbered by their position in `usable`, so that order is preference.
    const auto blind = blindAnchors(distance, usable);
    std::vector<std::vector<int>> near_of_anchor(distance.size());
    std::vector<std::vector<int>> anchors_near(usable.size());
    for (std::size_t a = 0; a < distance.size(); ++a) {
        const Distance best = nearest(distance[a], usable);
        for (std::size_t h = 0; h < usable.size(); ++h)
            if (distance[a][usable[h]] == best) {
                near_of_anchor[a].push_back(static_cast<int>(h));
                anchors_near[h].push_back(static_cast<int>(a));
            }
    }
    const auto first = spreadEvenly(near_of_anchor, std::vector<int>(usable.size(), 0),
                                    nearFirst(anchors_near, blind));
    std::vector<bool> used(usable.size(), false);
    for (std::size_t a = 0; a < distance.size(); ++a) {
        out.hcas[a].push_back(usable[first[a]]);
        used[first[a]] = true;
    }
    std::vector<int> spare;
    std::vector<std::vector<int>> spare_near;
    for (std::size_t h = 0; h < usable.size(); ++h) {
        if (used[h]) continue;
        std::erase_if(anchors_near[h], [&](int a) { return blind[a]; });
        if (anchors_near[h].empty()) {
            out.idle.push_back(usable[h]);
            continue;
        }
        auto best = Distance::Unknown;
        for (const int a : anchors_near[h]) best = std::min(best, distance[a][usable[h]]);
        std::erase_if(anchors_near[h], [&](int a) { return distance[a][usable[h]] != best; });
        spare.push_back(usable[h]);
        spare_near.push_back(anchors_near[h]);
    }
    const auto anchor =
        spreadEvenly(spare_near, std::vector<int>(distance.size(), 1), upTo(distance.size()));
    for (std::size_t s = 0; s < spare.size(); ++s) out.hcas[anchor[s]].push_back(spare[s]);
    return out;
}

std::vector<int> keepNearest(const std::vector<std::vector<Distance>>& distance,
                             std::vector<int> usable, std::size_t count) {
    while (usable.size() > count) {
        std::size_t victim = 0;
        long long least = -1;
        for (std::size_t i = 0; i < usable.size(); ++i) {
            auto rest = usable;
            rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
            const long long cost = totalDistance(distance, rest);
            if (least < 0 || cost <= least) {
                least = cost;
                victim = i;
            }
        }
        usable.erase(usable.begin() + static_cast<std::ptrdiff_t>(victim));
    }
    return usable;
}

}  // namespace rdmatune
