// pairUp() against brute force: all assignments are tried, with the definition of best written out.
#include "tuner/binding/pairing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <tuple>

namespace rdmatune {
namespace {

using Matrix = std::vector<std::vector<Distance>>;

/// Calls `visit` with every vector of one choice out of each list.
void forEach(const std::vector<std::vector<int>>& lists,
             const std::function<void(const std::vector<int>&)>& visit) {
    std::vector<int> choice(lists.size());
    const std::function<void(std::size_t)> step = [&](std::size_t at) {
        if (at == lists.size()) return visit(choice);
        for (const int option : lists[at]) {
            choice[at] = option;
            step(at + 1);
        }
    };
    step(0);
}

std::vector<int> sortedLoads(const std::vector<int>& choice, std::size_t machines, int base) {
    std::vector<int> loads(machines, base);
    for (const int machine : choice) ++loads[static_cast<std::size_t>(machine)];
    std::ranges::sort(loads, std::greater<>());
    return loads;
}

/// Best first HCA of each anchor, as positions in `usable`.
std::vector<int> bestFirst(const Matrix& distance, const std::vector<int>& usable) {
    std::vector<int> all(usable.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    using Value = std::tuple<int, std::vector<int>, std::vector<int>>;
    std::optional<Value> best;
    forEach(std::vector<std::vector<int>>(distance.size(), all), [&](const auto& choice) {
        int total = 0;
        for (std::size_t a = 0; a < choice.size(); ++a)
            total += static_cast<int>(distance[a][usable[choice[a]]]);
        Value value{total, sortedLoads(choice, usable.size(), 0), choice};
        if (!best || value < *best) best = std::move(value);
    });
    return std::get<2>(*best);
}

/// Every HCA that is nobody's first and near enough to somebody: the anchors it may go to.
struct Spares {
    std::vector<int> hcas;
    std::vector<std::vector<int>> anchors;
};
Spares sparesOf(const Matrix& distance, const std::vector<int>& usable,
                const std::vector<int>& first) {
    Spares out;
    for (std::size_t h = 0; h < usable.size(); ++h) {
        if (std::ranges::find(first, static_cast<int>(h)) != first.end()) continue;
        std::vector<int> near;
        auto nearest = Distance::Unknown;
        for (std::size_t a = 0; a < distance.size(); ++a) {
            const Distance here = distance[a][usable[h]];
            if (here > distance[a][usable[first[a]]]) continue;
            if (!near.empty() && here > nearest) continue;
            if (near.empty() || here < nearest) near.clear();
            nearest = here;
            near.push_back(static_cast<int>(a));
        }
        if (near.empty()) continue;
        out.hcas.push_back(usable[h]);
        out.anchors.push_back(near);
    }
    return out;
}

std::vector<int> bestAnchors(const Spares& spares, std::size_t anchors) {
    using Value = std::tuple<std::vector<int>, std::vector<int>>;
    std::optional<Value> best;
    forEach(spares.anchors, [&](const auto& choice) {
        Value value{sortedLoads(choice, anchors, 1), choice};
        if (!best || value < *best) best = std::move(value);
    });
    return std::get<1>(*best);
}

Matrix randomMatrix(std::mt19937& random, std::size_t anchors, std::size_t hcas, int kinds) {
    std::uniform_int_distribution<int> distance(0, kinds - 1);
    Matrix out(anchors, std::vector<Distance>(hcas));
    for (auto& row : out)
        for (auto& entry : row) entry = static_cast<Distance>(distance(random));
    return out;
}

/// Whether nothing is known of some anchors, while something is of others.
bool someAreBlind(const Matrix& distance, const std::vector<int>& usable) {
    const auto blind = std::ranges::count_if(distance, [&](const auto& row) {
        return std::ranges::all_of(usable, [&](int h) { return row[h] == Distance::Unknown; });
    });
    return blind > 0 && blind < std::ssize(distance);
}

TEST(Pairing, IsOptimalOnRandomNodes) {
    std::mt19937 random(20240607);
    int shared = 0;
    int spared = 0;
    for (int round = 0; round < 6000; ++round) {
        const std::size_t anchors = 1 + random() % 5;
        const std::size_t hcas = 1 + random() % 5;
        const Matrix distance =
            randomMatrix(random, anchors, hcas, 1 + static_cast<int>(random() % 6));
        std::vector<int> usable;
        for (std::size_t h = 0; h < hcas; ++h)
            if (random() % 6 != 0) usable.push_back(static_cast<int>(h));
        if (usable.empty()) continue;
        std::ranges::shuffle(usable, random);          // rails by subnet are in any order
        if (someAreBlind(distance, usable)) continue;  // what then holds is tested below

        const auto first = bestFirst(distance, usable);
        const auto spares = sparesOf(distance, usable, first);
        const auto anchor = bestAnchors(spares, anchors);
        std::vector<std::vector<int>> expected;
        for (const int h : first) expected.push_back({usable[h]});
        for (std::size_t s = 0; s < spares.hcas.size(); ++s)
            expected[anchor[s]].push_back(spares.hcas[s]);

        const Pairing pairing = pairUp(distance, usable);
        ASSERT_EQ(pairing.hcas, expected) << "round " << round;
        std::size_t used = 0;
        for (const auto& list : expected) used += list.size();
        for (const int hca : pairing.idle)
            for (std::size_t a = 0; a < anchors; ++a)
                ASSERT_GT(distance[a][hca], distance[a][pairing.hcas[a].front()]);
        shared += used > usable.size() ? 1 : 0;
        spared += spares.hcas.empty() ? 0 : 1;
    }
    // The rounds meet both kinds of nodes often.
    EXPECT_GT(shared, 500);
    EXPECT_GT(spared, 500);
}

TEST(Pairing, AnchorsOfWhichNothingIsKnownTakeWhatIsLeftOver) {
    constexpr auto kNear = Distance::Pxb;
    constexpr auto kFar = Distance::Sys;
    constexpr auto kNone = Distance::Unknown;
    // Two GPUs of a cut matrix. HCA 3 is near the last known one and goes first; of those that are
    // far from everybody only as many are used as are needed.
    const Matrix cut = {{kFar, kNear, kFar, kFar, kFar, kFar},
                        {kFar, kFar, kNear, kNear, kFar, kFar},
                        {kNone, kNone, kNone, kNone, kNone, kNone},
                        {kNone, kNone, kNone, kNone, kNone, kNone}};
    const auto pairing = pairUp(cut, {0, 1, 2, 3, 4, 5});
    EXPECT_EQ(pairing.hcas, (std::vector<std::vector<int>>{{1}, {2}, {3}, {0}}));
    EXPECT_EQ(pairing.idle, (std::vector<int>{4, 5}));
    // Where nothing is known of anybody, all are used.
    const Matrix dark = {{kNone, kNone, kNone}, {kNone, kNone, kNone}};
    EXPECT_EQ(pairUp(dark, {0, 1, 2}).hcas, (std::vector<std::vector<int>>{{0, 2}, {1}}));
}

TEST(Pairing, EvenestSpreadIsAlsoTheLeastSumOfSquares) {
    std::mt19937 random(7);
    for (int round = 0; round < 1500; ++round) {
        const Matrix distance = randomMatrix(random, 1 + random() % 6, 4, 2);
        const std::vector<int> usable{0, 1, 2, 3};
        const auto pairing = pairUp(distance, usable);
        std::vector<std::vector<int>> near(distance.size());
        for (std::size_t a = 0; a < distance.size(); ++a)
            for (const int h : usable)
                if (distance[a][h] == std::ranges::min(distance[a])) near[a].push_back(h);
        const auto squares = [&](const std::vector<int>& choice) {
            int sum = 0;
            for (const int load : sortedLoads(choice, 4, 0)) sum += load * load;
            return sum;
        };
        int least = 1000;
        forEach(near, [&](const auto& choice) { least = std::min(least, squares(choice)); });
        std::vector<int> got;
        for (const auto& list : pairing.hcas) got.push_back(list.front());
        ASSERT_EQ(squares(got), least);
    }
}

TEST(Pairing, LargeFlatNodeIsQuickAndInOrder) {
    const Matrix distance(16, std::vector<Distance>(16, Distance::Phb));
    std::vector<int> usable(16);
    for (int i = 0; i < 16; ++i) usable[i] = i;
    const auto pairing = pairUp(distance, usable);
    for (int i = 0; i < 16; ++i) EXPECT_EQ(pairing.hcas[i], std::vector<int>{i});
}

TEST(Pairing, WithoutHcasEveryAnchorGoesWithout) {
    const auto pairing = pairUp(Matrix(2), {});
    EXPECT_EQ(pairing.hcas, (std::vector<std::vector<int>>{{}, {}}));
    EXPECT_TRUE(pairing.idle.empty());
}

TEST(KeepNearest, DropsTheOneNobodyMissesAndTheLastAmongEquals) {
    // Both anchors are near HCA 1; HCA 0 and 2 are far.
    const Matrix distance{{Distance::Sys, Distance::Pix, Distance::Sys},
                          {Distance::Sys, Distance::Pix, Distance::Sys}};
    EXPECT_EQ(keepNearest(distance, {0, 1, 2}, 2), (std::vector<int>{0, 1}));
    EXPECT_EQ(keepNearest(distance, {0, 1, 2}, 1), (std::vector<int>{1}));
    EXPECT_EQ(keepNearest(distance, {0, 1, 2}, 9), (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace rdmatune
