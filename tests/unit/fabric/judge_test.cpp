#include "tuner/fabric/judge.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>

namespace rdmatune::fabric {
namespace {

using LatencyOf = std::function<double(int, int)>;
using RateOf = std::function<double(int, int)>;

const RateOf kFullRate = [](int, int) { return 20.0; };
const LatencyOf kUsualLatency = [](int, int) { return 2.0; };
const Thresholds kVerbs = thresholdsFor(false, false, 2.1, 0.93);

std::vector<EdgeResult> measured(int nodes, const LatencyOf& latency, const RateOf& rate) {
    std::vector<EdgeResult> out;
    for (const Edge& edge : allEdges(nodes)) {
        EdgeResult result;
        result.edge = edge;
        const double us = latency(edge.from, edge.to);
        result.latency = Latency{us * 0.9, us, us * 2, 100};
        result.gbs = rate(edge.from, edge.to);
        out.push_back(result);
    }
    return out;
}

/// Runs the retests on the same pretended network and judges.
std::vector<Verdict> judged(int nodes, const LatencyOf& latency, const RateOf& rate,
                            const Thresholds& limits = kVerbs) {
    const auto suspects = findSuspects(measured(nodes, latency, rate), limits);
    std::vector<PairResult> results;
    for (const PairTest& pair :
         planRetests(suspects, std::vector<bool>(static_cast<std::size_t>(nodes), true))) {
        const double us = latency(pair.from, pair.to);
        results.push_back({pair.id,
                           pair.from,
                           pair.to,
                           Latency{us * 0.9, us, us * 2, 100},
                           rate(pair.from, pair.to),
                           {}});
    }
    return judge(suspects, results, limits);
}

class JudgeOfAnySize : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, JudgeOfAnySize, testing::Values(3, 4, 5, 8, 16, 33, 256));

TEST_P(JudgeOfAnySize, AHealthyNetworkNamesNobody) {
    EXPECT_TRUE(findSuspects(measured(GetParam(), kUsualLatency, kFullRate), kVerbs).empty());
}

TEST_P(JudgeOfAnySize, ANodeWithHighLatencyIsNamed) {
    const int bad = GetParam() / 2;
    const auto verdicts = judged(
        GetParam(), [&](int a, int b) { return a == bad || b == bad ? 40.0 : 2.0; }, kFullRate);
    ASSERT_EQ(verdicts.size(), 1U);
    EXPECT_EQ(verdicts[0].kind, Verdict::Kind::Node);
    EXPECT_EQ(verdicts[0].node, bad);
    EXPECT_TRUE(verdicts[0].by_latency);
    EXPECT_DOUBLE_EQ(verdicts[0].figure, 40);
    EXPECT_DOUBLE_EQ(verdicts[0].others, 2);
    EXPECT_GE(verdicts[0].partners, 2);
}

TEST_P(JudgeOfAnySize, ANodeWithLowBandwidthIsNamed) {
    const int bad = GetParam() - 1;
    const auto verdicts = judged(GetParam(), kUsualLatency,
                                 [&](int a, int b) { return a == bad || b == bad ? 8.0 : 20.0; });
    if (GetParam() == 3) {
        // Two of three edges are slow and differ by their spread: not certain enough to accuse
        // anybody.
        EXPECT_LE(verdicts.size(), 1U);
        return;
    }
    ASSERT_EQ(verdicts.size(), 1U);
    EXPECT_EQ(verdicts[0].node, bad);
    EXPECT_FALSE(verdicts[0].by_latency);
}

TEST_P(JudgeOfAnySize, ABadLinkIsToldFromABadNode) {
    if (GetParam() < 4) return;
    // Nodes 1 and 2 are ring neighbours at every size.
    const auto link = [](int a, int b) { return std::min(a, b) == 1 && std::max(a, b) == 2; };
    const auto verdicts = judged(
        GetParam(), [&](int a, int b) { return link(a, b) ? 50.0 : 2.0; }, kFullRate);
    ASSERT_EQ(verdicts.size(), 1U);
    EXPECT_EQ(verdicts[0].kind, Verdict::Kind::Link);
    EXPECT_EQ(verdicts[0].node, 1);
    EXPECT_EQ(verdicts[0].other, 2);
}

TEST(Judge, WhatARetestDoesNotConfirmIsNotSaid) {
    const auto suspects =
        findSuspects(measured(
                         8, [](int a, int) { return a == 3 ? 60.0 : 2.0; }, kFullRate),
                     kVerbs);
    ASSERT_FALSE(suspects.empty());
    std::vector<PairResult> results;
    for (const PairTest& pair : planRetests(suspects, std::vector<bool>(8, true)))
        results.push_back({pair.id, pair.from, pair.to, Latency{1.9, 2, 4, 100}, 20, {}});
    ASSERT_FALSE(results.empty());
    EXPECT_TRUE(judge(suspects, results, kVerbs).empty());
}

TEST(Judge, ANoisyTcpNetworkNamesNobody) {
    const Thresholds tcp = thresholdsFor(true, false, 2.1, 0.93);
    std::mt19937 random(7);
    int named = 0;
    for (int turn = 0; turn < 200; ++turn) {
        // Medians wander by a factor of eight, minima and rates by a third.
        std::uniform_real_distribution<double> wander(1, 8);
        std::uniform_real_distribution<double> little(1, 1.33);
        const auto suspects = [&] {
            auto edges = measured(8, kUsualLatency, kFullRate);
            for (EdgeResult& edge : edges) {
                edge.latency = Latency{20 * little(random), 30 * wander(random), 5000, 100};
                edge.gbs = 1.2 / little(random);
            }
            return findSuspects(edges, tcp);
        }();
        named += suspects.empty() ? 0 : 1;
    }
    EXPECT_EQ(named, 0);
}

TEST(Judge, ALongLinkOfANodeWithLittleBandwidthIsNamedAsWell) {
    const auto verdicts = judged(
        6, [](int a, int b) { return std::min(a, b) == 1 && std::max(a, b) == 2 ? 40.0 : 2.0; },
        [](int a, int b) { return a == 1 || b == 1 ? 8.0 : 20.0; });
    ASSERT_EQ(verdicts.size(), 2U);
    EXPECT_EQ(verdicts[0].kind, Verdict::Kind::Node);
    EXPECT_EQ(verdicts[0].node, 1);
    EXPECT_FALSE(verdicts[0].by_latency);
    EXPECT_EQ(verdicts[1].kind, Verdict::Kind::Link);
    EXPECT_EQ(verdicts[1].node + verdicts[1].other, 3) << "1 and 2";
    EXPECT_TRUE(verdicts[1].by_latency);
}

TEST(Judge, NodesThatShareAMachineMayShareItUnequally) {
    for (const bool tcp : {false, true}) {
        const Thresholds shared = thresholdsFor(tcp, true, 2.1, 0.93);
        EXPECT_TRUE(judged(
                        4, kUsualLatency, [](int a, int) { return a == 1 ? 8.0 : 20.0; }, shared)
                        .empty());
        EXPECT_FALSE(findSuspects(measured(
                                      4, [](int a, int b) { return a == 1 && b == 2 ? 4e3 : 70.0; },
                                      kFullRate),
                                  shared)
                         .empty());
    }
}

TEST(Judge, TwoNodesHaveNobodyToCompareWith) {
    const std::vector<Suspect> suspects{{0, 1, 9}};
    EXPECT_TRUE(planRetests(suspects, {true, true}).empty());
    EXPECT_TRUE(planRetests(suspects, {true, true, false}).empty());
}

TEST(Judge, RetestsNeverAskANodeTwiceInASlotNorOneThatIsGone) {
    std::mt19937 random(11);
    for (int turn = 0; turn < 300; ++turn) {
        const std::size_t nodes = 3 + random() % 20;
        std::vector<bool> present(nodes);
        for (std::size_t i = 0; i < nodes; ++i) present[i] = random() % 5 != 0;
        std::vector<Suspect> suspects;
        for (std::size_t i = 0; i < random() % 8; ++i) {
            const int a = static_cast<int>(random() % nodes);
            const int b = static_cast<int>(random() % nodes);
            if (a != b) suspects.push_back({a, b, 3});
        }
        std::map<int, std::set<int>> busy;
        for (const PairTest& pair : planRetests(suspects, present)) {
            EXPECT_NE(pair.from, pair.to);
            for (const int end : {pair.from, pair.to}) {
                EXPECT_TRUE(present[static_cast<std::size_t>(end)]);
                EXPECT_TRUE(busy[pair.slot].insert(end).second);
            }
        }
        // A constant number of slots keeps retests inside the budget at every size.
        EXPECT_LE(busy.size(), 14U);
    }
}

TEST(Judge, SaysWhoAndByHowMuch) {
    Verdict verdict;
    verdict.node = 1;
    verdict.figure = 212.25;
    verdict.others = 11.5;
    verdict.partners = 3;
    EXPECT_EQ(describe(verdict, {"a", "gpu02"}),
              "node gpu02 is slow: 212.2 us one way where the others have 11.5 us, with each of 3 "
              "partners");
    verdict.kind = Verdict::Kind::Link;
    verdict.other = 0;
    verdict.by_latency = false;
    verdict.figure = 1;
    verdict.others = 12;
    EXPECT_EQ(describe(verdict, {"a", "gpu02"}),
              "the link between gpu02 and a is slow: 1.00 GB/s where the others have 12.00 GB/s; "
              "both nodes are well with other partners");
}

}  // namespace
}  // namespace rdmatune::fabric
