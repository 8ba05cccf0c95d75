#include "tuner/fabric/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace rdmatune::fabric {
namespace {

class Schedules : public testing::TestWithParam<int> {};

TEST_P(Schedules, NoNodeHasTwoEdgesInARound) {
    const int nodes = GetParam();
    std::map<std::pair<int, int>, std::set<int>> busy;  // pattern, round -> nodes
    for (const Edge& edge : allEdges(nodes)) {
        std::set<int>& round = busy[{static_cast<int>(edge.pattern), edge.round}];
        EXPECT_TRUE(round.insert(edge.from).second) << edge.from << " is taken";
        EXPECT_TRUE(round.insert(edge.to).second) << edge.to << " is taken";
    }
}

TEST_P(Schedules, RoundsDoNotGrowWithTheJob) {
    const int nodes = GetParam();
    for (const Pattern pattern : kPatterns) {
        EXPECT_LE(roundsOf(pattern, nodes), 3);
        int last = -1;
        for (const Edge& edge : allEdges(nodes))
            if (edge.pattern == pattern) last = std::max(last, edge.round);
        EXPECT_EQ(last + 1, roundsOf(pattern, nodes)) << "a round without an edge wastes a slot";
    }
}

TEST_P(Schedules, BothEndsListTheirSharedEdgesInTheSameOrder) {
    const int nodes = GetParam();
    std::map<std::pair<int, int>, std::map<int, std::vector<Edge>>>
        shared;  // ends -> lister -> edges
    std::size_t total = 0;
    for (int node = 0; node < nodes; ++node)
        for (const Edge& edge : edgesOfNode(node, nodes)) {
            EXPECT_TRUE(edge.from == node || edge.to == node);
            shared[std::minmax(edge.from, edge.to)][node].push_back(edge);
            ++total;
        }
    EXPECT_EQ(total, 2 * allEdges(nodes).size());
    for (const auto& [ends, lists] : shared) {
        ASSERT_EQ(lists.size(), 2U);
        EXPECT_EQ(lists.begin()->second, lists.rbegin()->second);
    }
}

TEST_P(Schedules, ANodeHasFewEdges) {
    const int nodes = GetParam();
    for (int node = 0; node < nodes; ++node) {
        const auto edges = edgesOfNode(node, nodes);
        // Two of the ring; in the trees at most three as an inner node and one or two as the
        // other's leaf or root.
        EXPECT_LE(edges.size(), 7U);
        EXPECT_GE(edges.size(), 3U);
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Schedules, testing::Range(2, 100));
INSTANTIATE_TEST_SUITE_P(BigSizes, Schedules, testing::Values(999, 1000, 1024));

TEST(Schedule, OneNodeHasNothingToMeasure) {
    EXPECT_TRUE(allEdges(1).empty());
    EXPECT_TRUE(edgesOfNode(0, 1).empty());
    EXPECT_EQ(roundsOf(Pattern::Ring, 1), 0);
}

TEST(Schedule, TwoNodesMeasureBothDirections) {
    const auto edges = allEdges(2);
    ASSERT_EQ(edges.size(), 4U);
    EXPECT_EQ(edges[0], (Edge{Pattern::Ring, 0, 1, 0}));
    EXPECT_EQ(edges[1], (Edge{Pattern::Ring, 1, 0, 1}));
    EXPECT_EQ(edges[2], (Edge{Pattern::Tree0, 1, 0, 0}));
    EXPECT_EQ(edges[3], (Edge{Pattern::Tree1, 0, 1, 0}));
}

}  // namespace
}  // namespace rdmatune::fabric
