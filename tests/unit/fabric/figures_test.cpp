// Statistics, and the profile that is made of the edges' figures.
#include <gtest/gtest.h>

#include "tuner/fabric/assemble.hpp"
#include "tuner/fabric/statistics.hpp"

namespace rdmatune::fabric {
namespace {

TEST(Statistics, Median) {
    EXPECT_DOUBLE_EQ(median({}), 0);
    EXPECT_DOUBLE_EQ(median({3}), 3);
    EXPECT_DOUBLE_EQ(median({9, 1, 5}), 5);
    EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2) << "the lower of the two in the middle";
}

TEST(Statistics, AFewWildValuesDoNotMoveTheSpread) {
    EXPECT_DOUBLE_EQ(robustSpread({10, 10, 10, 10, 1000}), 0);
    EXPECT_NEAR(robustSpread({1, 2, 3, 4, 5}), 1.4826, 1e-9);
}

TEST(Statistics, LatencyOfSamples) {
    std::vector<double> samples;
    for (int i = 1; i <= 101; ++i) samples.push_back(i);
    const Latency out = latencyOf(samples);
    EXPECT_DOUBLE_EQ(out.min_us, 1);
    EXPECT_DOUBLE_EQ(out.median_us, 51);
    EXPECT_DOUBLE_EQ(out.p99_us, 100);
    EXPECT_EQ(out.samples, 101);
    EXPECT_EQ(latencyOf({}).samples, 0);
}

std::vector<EdgeResult> wholeMeasurement(int nodes) {
    std::vector<EdgeResult> out;
    for (const Edge& edge : allEdges(nodes)) {
        EdgeResult result;
        result.edge = edge;
        result.latency = Latency{1, edge.pattern == Pattern::Ring ? 2.0 : 3.0, 4, 100};
        result.gbs = edge.pattern == Pattern::Ring ? 24 : 8;
        result.rail_gbs = edge.pattern == Pattern::Ring ? 12 : 0;
        out.push_back(result);
        if (edge.pattern == Pattern::Ring) continue;
        result.down = true;
        result.latency.reset();
        out.push_back(result);
    }
    return out;
}

TEST(Assemble, FiguresOfAWholeMeasurement) {
    FabricProfile profile;
    auto edges = wholeMeasurement(8);
    edges[2].latency->median_us = 30;
    edges[3].gbs = 5;
    addFigures(edges, 8, profile);
    EXPECT_EQ(profile.ring.alpha_ns, 2000U);
    EXPECT_EQ(profile.ring.alpha_worst_ns, 30000U);
    EXPECT_EQ(profile.ring.beta_mbps, 24000U);
    EXPECT_EQ(profile.ring.beta_worst_mbps, 5000U);
    EXPECT_EQ(profile.tree.alpha_ns, 3000U);
    EXPECT_EQ(profile.rail_mbps, 12000U);
    // Of eight nodes most send on four streams of 8 GB/s, the two roots and some others on two.
    EXPECT_EQ(profile.tree.beta_mbps, 32000U);
    EXPECT_EQ(profile.tree.beta_worst_mbps, 16000U);
    const Coverage coverage = coverageOf(edges, 8);
    EXPECT_DOUBLE_EQ(coverage.share, 1);
    EXPECT_EQ(coverage.edges_missing, 0);
    EXPECT_TRUE(coverage.usable);
}

TEST(Assemble, ANodeWithAMissingStreamDoesNotCountForTheTree) {
    auto edges = wholeMeasurement(8);
    FabricProfile whole;
    addFigures(edges, 8, whole);
    // Node 0 is the root of tree 0 and sends on two streams: it is the worst node.
    for (EdgeResult& edge : edges)
        if (edge.edge.pattern == Pattern::Tree0 && edge.down && edge.edge.to == 0) edge.gbs = 0;
    FabricProfile profile;
    addFigures(edges, 8, profile);
    EXPECT_EQ(profile.tree.beta_mbps, whole.tree.beta_mbps);
    // With half of its streams it would look like 8 GB/s.
    EXPECT_EQ(profile.tree.beta_worst_mbps, 16000U);
    EXPECT_EQ(coverageOf(edges, 8).edges_missing, 1);
}

TEST(Assemble, HalfTheRingIsEnoughAndLessIsNot) {
    auto edges = wholeMeasurement(4);
    int dropped = 0;
    for (EdgeResult& edge : edges)
        if (edge.edge.pattern == Pattern::Ring && dropped < 2) {
            edge.gbs = 0;
            ++dropped;
        }
    EXPECT_TRUE(coverageOf(edges, 4).usable);
    for (EdgeResult& edge : edges)
        if (edge.edge.pattern == Pattern::Ring && edge.gbs > 0 && dropped == 2) {
            edge.gbs = 0;
            ++dropped;
        }
    EXPECT_FALSE(coverageOf(edges, 4).usable);
}

TEST(Assemble, NothingMeasuredIsNothing) {
    FabricProfile profile;
    addFigures({}, 4, profile);
    EXPECT_EQ(profile.ring, PatternFigures{});
    EXPECT_EQ(profile.tree, PatternFigures{});
    EXPECT_FALSE(coverageOf({}, 4).usable);
    EXPECT_DOUBLE_EQ(coverageOf({}, 4).share, 0);
}

}  // namespace
}  // namespace rdmatune::fabric
