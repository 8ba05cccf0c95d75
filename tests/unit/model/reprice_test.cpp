// Re-pricing: never harmful, never beyond its own entries, and in the direction that physics
// demands.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "tuner/model/explain.hpp"
#include "tuner/model/network.hpp"

namespace rdmatune::model {
namespace {

constexpr Collective kAll[] = {Collective::Broadcast, Collective::Reduce, Collective::AllGather,
                               Collective::ReduceScatter, Collective::AllReduce};

bool applies(const Pricing& pricing, Collective what, std::uint64_t bytes, Table& table) {
    return reprice(pricing, what, bytes, 1, table.data(), kAlgorithms, kProtocols);
}

Choice choiceOf(const Pricing& pricing, Collective what, std::uint64_t bytes, Table table) {
    EXPECT_TRUE(applies(pricing, what, bytes, table));
    return table.choice();
}

TEST(NeverHarmful, TheAssumedNetworkChangesNotOneBit) {
    for (const std::uint32_t nodes : {2U, 3U, 4U, 16U, 100U})
        for (const std::uint32_t gpus : {1U, 4U, 8U})
            for (const double nominal : {12.5, 25.0, 50.0}) {
                const CommSize size{nodes * gpus, nodes};
                const Pricing pricing = pricingOf(assumedProfile(nodes, nominal), size);
                for (const Collective what : kAll)
                    for (std::uint64_t bytes = 1; bytes < (std::uint64_t{1} << 35);
                         bytes = bytes * 3 + 1) {
                        Table table = tableOf(shapeOf(size, gpus, nominal), what, bytes);
                        table.cost[5][2] = 50;
                        const Table before = table;
                        (void)applies(pricing, what, bytes, table);
                        ASSERT_EQ(table, before) << nodes << " x " << gpus << ", " << bytes;
                    }
            }
}

TEST(NeverHarmful, RecordedTablesKeepTheirChoices) {
    const std::vector<Recorded> all = recordedTables();
    if (all.empty()) GTEST_SKIP() << "no recorded tables (RDMA_TUNE_CASES)";
    ASSERT_GT(all.size(), 500U);
    for (const Recorded& r : all)
        // Better than the assumed bandwidth is not believed either.
        for (const double share : {1.0, 1.02}) {
            FabricProfile profile = assumedProfile(r.nodes, 50, r.gpus);
            profile.ring.beta_mbps = profile.ring.beta_worst_mbps =
                static_cast<std::uint32_t>(profile.ring.beta_mbps * share);
            profile.tree = profile.ring;
            const Pricing pricing = pricingOf(profile, {r.nodes * r.gpus, r.nodes});
            Table table = r.table;
            ASSERT_TRUE(applies(pricing, r.what, r.bytes, table));
            ASSERT_EQ(table, r.table) << r.file << " " << r.bytes;
        }
}

TEST(NeverHarmful, RecordedTablesOnlyMoveRingAndTree) {
    const std::vector<Recorded> all = recordedTables();
    if (all.empty()) GTEST_SKIP() << "no recorded tables (RDMA_TUNE_CASES)";
    for (const Recorded& r : all)
        for (const double alpha : {0.7, 2.0, 10.0, 100.0})
            for (const double beta : {48.0, 24.0, 5.0}) {
                const Pricing pricing = pricingOf(profileOf(r.nodes, alpha, beta, 50, r.gpus),
                                                  {r.nodes * r.gpus, r.nodes});
                Table table = r.table;
                ASSERT_TRUE(applies(pricing, r.what, r.bytes, table));
                for (int a = 0; a < kAlgorithms; ++a)
                    for (int p = 0; p < kProtocols; ++p) {
                        if (r.table.cost[a][p] < 0 || a > 1) {
                            ASSERT_EQ(table.cost[a][p], r.table.cost[a][p])
                                << r.file << " " << a << p;
                        } else {
                            ASSERT_GT(table.cost[a][p], 0) << r.file << " " << a << p;
                        }
                    }
            }
}

TEST(NeverHarmful, SlightlySlowerThanAssumedChangesFewChoices) {
    // A healthy fabric measures a little more than the reference; that must not turn choices round.
    const CommSize size{32, 4};
    const Pricing pricing = pricingOf(profileOf(4, 1.3, 47.5, 50), size);
    const Shape shape = shapeOf(size, 8, 50);
    int changed = 0;
    for (std::uint64_t bytes = 1024; bytes <= (std::uint64_t{1} << 33); bytes *= 2) {
        const Table table = tableOf(shape, Collective::AllReduce, bytes);
        if (choiceOf(pricing, Collective::AllReduce, bytes, table) != table.choice()) ++changed;
    }
    EXPECT_LE(changed, 1);
}

/// Where ring begins, to 1/16, with the plugin.
std::uint64_t crossing(double alpha, double beta, std::uint32_t nodes) {
    const CommSize size{nodes * 8, nodes};
    return model::ringFrom(pricingOf(profileOf(nodes, alpha, beta, 50), size), shapeOf(size, 8, 50),
                           Collective::AllReduce, true);
}

TEST(Physics, HigherLatencyMovesRingTowardsLargerMessages) {
    // Where the network is far from assumed; nearer, NCCL's own crossing has its part in it.
    for (const double beta : {48.0, 36.0})
        for (const std::uint32_t nodes : {4U, 8U, 16U}) {
            std::uint64_t last = 0;
            for (const double alpha : {5.0, 15.0, 40.0, 100.0}) {
                const std::uint64_t from = crossing(alpha, beta, nodes);
                EXPECT_GT(from, last) << alpha << " us, " << beta << " GB/s, " << nodes << " nodes";
                last = from;
            }
        }
}

TEST(Physics, PricesGrowWithAlphaAndFallWithBeta) {
    const CommSize size{64, 8};
    const Shape shape = shapeOf(size, 8, 50);
    const auto grows = [&](Collective what, std::uint64_t bytes,
                           const std::vector<std::pair<double, double>>& networks) {
        Ticks last[2][3] = {{-1, -1, -1}, {-1, -1, -1}};
        const FamilyPrices nccl = ncclPrices(shape, kDefaultLatencies, what, bytes);
        for (const auto& [alpha, beta] : networks) {
            const FamilyPrices p =
                measuredPrices(pricingOf(profileOf(8, alpha, beta, 50), size), nccl, what, bytes);
            for (int a = 0; a < 2; ++a)
                for (int k = 0; k < 3; ++k) {
                    EXPECT_GE(p.price[a][k], last[a][k])
                        << a << k << " " << bytes << " bytes, " << alpha << " us, " << beta;
                    last[a][k] = p.price[a][k];
                }
        }
    };
    for (const Collective what : {Collective::AllReduce, Collective::AllGather})
        for (std::uint64_t bytes = 1024; bytes < (std::uint64_t{1} << 34); bytes *= 4) {
            grows(what, bytes, {{5, 48}, {7, 48}, {10, 48}, {30, 48}, {100, 48}});
            grows(what, bytes, {{2, 38}, {2, 30}, {2, 12}, {2, 3}});
        }
}

TEST(Physics, NcclsPriceFadesWithTheDistance) {
    const CommSize size{64, 8};
    constexpr Ticks kWhole = 1 << Pricing::kKeptBits;
    const auto kept = [&](double alpha, double beta) {
        return pricingOf(profileOf(8, alpha, beta, 50), size).kept;
    };
    EXPECT_EQ(kept(1, 48), kWhole);
    EXPECT_EQ(kept(1, 60), kWhole);  // more than NCCL assumes is not believed
    EXPECT_NEAR(static_cast<double>(kept(2, 48)), 0.75 * kWhole, 2);
    EXPECT_NEAR(static_cast<double>(kept(0.5, 48)), 0.875 * kWhole, 2);
    EXPECT_EQ(kept(5, 48), 0);
    EXPECT_EQ(kept(1, 38), 0);
    Ticks last = kWhole + 1;
    for (const double alpha : {1.0, 1.2, 2.0, 3.0, 4.0, 4.9}) {
        EXPECT_LT(kept(alpha, 48), last);
        last = kept(alpha, 48);
    }
    // One long edge counts as long as it is for one step.
    FabricProfile profile = profileOf(8, 1, 48, 50);
    profile.ring.alpha_worst_ns = 15000;
    EXPECT_NEAR(static_cast<double>(pricingOf(profile, size).kept), 0.5 * kWhole, 2);
}

TEST(Octaves, AreTheClosedFormAtPowersOfTwoAndCloseBetween) {
    // Far from what NCCL assumes a price is the closed form, bound by NCCL's bandwidth term.
    for (const CommSize size : {CommSize{16, 2}, {12, 3}, {64, 8}, {8, 8}, {250, 32}}) {
        const Pricing pricing = pricingOf(profileOf(40, 25, 20, 50), size);
        for (std::uint64_t bytes = 256; bytes <= std::uint64_t{1} << 36; bytes *= 2)
            for (int p = 0; p < kProtocols; ++p)
                for (const Collective what : {Collective::AllReduce, Collective::AllGather}) {
                    const Operation operation{Algorithm::Ring,
                                              static_cast<Protocol>(p),
                                              what,
                                              size,
                                              pricing.rails,
                                              bytes};
                    for (const Ticks bound : {Ticks{0}, Ticks{1000000}}) {
                        const bool large = bytes >= largeFrom(size.ranks);
                        const Ticks nccl =
                            bound + ncclLatency(pricing.latency, Algorithm::Ring,
                                                static_cast<Protocol>(p), what, size, large);
                        const Ticks added =
                            networkShare(pricing, Algorithm::Ring, static_cast<Protocol>(p), what,
                                         bytes, 1, nccl);
                        ASSERT_EQ(nccl + added,
                                  timeOn(pricing.measured[1], pricing.latency, operation, bound));
                    }
                }
        for (std::uint64_t bytes = 3000; bytes < std::uint64_t{1} << 34; bytes = bytes * 13 / 8) {
            const Operation operation{Algorithm::Tree,       Protocol::Simple,
                                      Collective::AllReduce, size,
                                      pricing.rails,         bytes};
            const auto direct =
                static_cast<double>(timeOn(pricing.measured[0], pricing.latency, operation, 0));
            const auto line =
                static_cast<double>(1 + networkShare(pricing, Algorithm::Tree, Protocol::Simple,
                                                     Collective::AllReduce, bytes, 1, 1));
            EXPECT_NEAR(line / direct, 1, 0.2) << size.ranks << " ranks, " << bytes;
        }
    }
}

TEST(Physics, TheWorstEdgeCountsForTheWholeJobOnly) {
    FabricProfile profile = profileOf(8, 2, 48, 50);
    const Pricing plain = pricingOf(profile, {64, 8});
    profile.ring.alpha_worst_ns = profile.tree.alpha_worst_ns = 40000;
    profile.ring.beta_worst_mbps = profile.tree.beta_worst_mbps = 100000;
    const Pricing slow = pricingOf(profile, {64, 8});
    EXPECT_GT(slow.measured[1].worst_extra, plain.measured[1].worst_extra);
    EXPECT_GT(slow.measured[1].rate, plain.measured[1].rate);
    const Pricing part = pricingOf(profile, {32, 4});
    EXPECT_EQ(part.measured[1].worst_extra, 0);
    EXPECT_EQ(part.measured[1].rate, pricingOf(profileOf(8, 2, 48, 50), {32, 4}).measured[1].rate);
}

TEST(SubCommunicators, ArePricedForTheirOwnSize) {
    const FabricProfile profile = profileOf(16, 20, 24, 50);
    // One rank on each node: one rail, as NCCL's own table has it.
    EXPECT_EQ(pricingOf(profile, {16, 16}).rails, 1U);
    EXPECT_EQ(pricingOf(profile, {128, 16}).rails, 8U);
    EXPECT_EQ(pricingOf(profile, {30, 8}).rails, 4U);  // uneven: up to four on a node
    Pricing pricing;
    EXPECT_EQ(makePricing(profile, {8, 1}, pricing), Aside::OneNode);
    EXPECT_EQ(makePricing(profile, {17, 17}, pricing), Aside::MoreNodes);
    const std::uint64_t bytes = 1 << 20;
    const Ticks small = networkShare(pricingOf(profile, {16, 2}), Algorithm::Ring, Protocol::LL128,
                                     Collective::AllReduce, bytes, 1, 100000);
    const Ticks large = networkShare(pricingOf(profile, {128, 16}), Algorithm::Ring,
                                     Protocol::LL128, Collective::AllReduce, bytes, 1, 100000);
    EXPECT_GT(large, 4 * small);
}

TEST(Others, AreNotBeatenForNotBeingPriced) {
    // NVLS tree crosses the same network: with latencies up, whoever was ahead stays ahead of it.
    const CommSize size{32, 4};
    const Shape shape = shapeOf(size, 8, 50);
    const Pricing slow = pricingOf(profileOf(4, 60, 48, 50), size);
    const std::uint64_t bytes = 64 * 1024;
    Table table = tableOf(shape, Collective::AllReduce, bytes);
    const Choice before = table.choice();
    const float tree = table.cost[before.algorithm][before.protocol];
    table.cost[5][2] = tree * 1.3F;
    Table priced = table;
    ASSERT_TRUE(applies(slow, Collective::AllReduce, bytes, priced));
    EXPECT_LT(priced.choice().algorithm, 2);
    EXPECT_EQ(priced.cost[5][2], table.cost[5][2]);
    // And it stays ahead where it was ahead.
    table.cost[5][2] = tree * 0.7F;
    priced = table;
    ASSERT_TRUE(applies(slow, Collective::AllReduce, bytes, priced));
    EXPECT_EQ(priced.choice().algorithm, 5);
    // A faster network than assumed does not let ring or tree pass it either.
    priced = table;
    ASSERT_TRUE(
        applies(pricingOf(profileOf(4, 0.3, 48, 50), size), Collective::AllReduce, bytes, priced));
    EXPECT_EQ(priced.choice().algorithm, 5);
}

// S55, NVIDIA/nccl #946 and #812, nccl-tests #196: with exactly two nodes a tree has one edge and
// moves half of what a ring does, so tree wins at large sizes. That must not be carried over to
// more.
TEST(TwoNodes, AreNoMeasureForMore) {
    const std::uint64_t bytes = std::uint64_t{1} << 30;
    const auto leaving = [&](Algorithm algorithm, std::uint32_t nodes) {
        return static_cast<double>(leavingBytes(
            {algorithm, Protocol::Simple, Collective::AllReduce, {8 * nodes, nodes}, 8, bytes}));
    };
    EXPECT_NEAR(leaving(Algorithm::Tree, 2) / leaving(Algorithm::Ring, 2), 0.5, 0.05);
    EXPECT_NEAR(leaving(Algorithm::Tree, 4) / leaving(Algorithm::Ring, 4), 1.0, 0.05);
    // What was measured on two nodes says nothing of four: the plugin stands aside.
    Pricing pricing;
    EXPECT_EQ(makePricing(profileOf(2, 2, 48, 50), {32, 4}, pricing), Aside::MoreNodes);
}

// S57, nccl-eBPF: a tuner that kept LL above 256 KiB lost 39 times at 16 MiB.
TEST(Guards, LlIsNeverNewlyChosenForLargeMessages) {
    std::mt19937 random(5);
    std::uniform_real_distribution<float> cost(10, 5000);
    const Pricing pricing = pricingOf(profileOf(4, 50, 20, 50), {32, 4});
    const std::uint64_t bytes = std::uint64_t{8} << 20;
    int seen = 0;
    for (int i = 0; i < 20000; ++i) {
        Table table;
        for (int a = 0; a < 2; ++a)
            for (float& us : table.cost[a]) us = cost(random);
        const Choice before = table.choice();
        const Choice after = choiceOf(pricing, Collective::AllReduce, bytes, table);
        if (before.protocol != 0) {
            ASSERT_NE(after.protocol, 0);
        }
        seen += before.protocol == 0 && after.protocol == 0 ? 1 : 0;
    }
    EXPECT_GT(seen, 100);  // what NCCL chose itself may stay
}

TEST(Rules, PinWhatIsAvailable) {
    FabricProfile profile = profileOf(4, 1, 48, 50);
    std::snprintf(profile.rules, sizeof profile.rules,
                  "allreduce:0-65536:2-4:ring:ll/allreduce:65537-*:2-*:nvlstree:*");
    const CommSize size{32, 4};
    const Pricing pricing = pricingOf(profile, size);
    const Shape shape = shapeOf(size, 8, 50);
    EXPECT_EQ(choiceOf(pricing, Collective::AllReduce, 65536,
                       tableOf(shape, Collective::AllReduce, 65536)),
              (Choice{1, 0}));
    // Not available: passed over.
    const Table plain = tableOf(shape, Collective::AllReduce, 1 << 20);
    EXPECT_EQ(choiceOf(pricing, Collective::AllReduce, 1 << 20, plain), plain.choice());
    Table with = plain;
    with.cost[5][2] = 90000;
    EXPECT_EQ(choiceOf(pricing, Collective::AllReduce, 1 << 20, with), (Choice{5, 2}));
    // Other collectives are not touched.
    const Table gather = tableOf(shape, Collective::AllGather, 1024);
    EXPECT_EQ(choiceOf(pricing, Collective::AllGather, 1024, gather), gather.choice());
}

TEST(Rules, LeaveToNcclUndoesThePricing) {
    FabricProfile profile = profileOf(4, 100, 5, 50);
    std::snprintf(profile.rules, sizeof profile.rules, "*:0-*:0-*:nccl:*");
    const CommSize size{32, 4};
    const Pricing pricing = pricingOf(profile, size);
    for (std::uint64_t bytes = 1024; bytes < (std::uint64_t{1} << 33); bytes *= 2) {
        Table table = tableOf(shapeOf(size, 8, 50), Collective::AllReduce, bytes);
        const Table before = table;
        ASSERT_TRUE(applies(pricing, Collective::AllReduce, bytes, table));
        EXPECT_EQ(table, before);
    }
}

TEST(WrongInput, StandsAside) {
    const Pricing pricing = pricingOf(profileOf(4, 30, 20, 50), {32, 4});
    const Table good = tableOf(shapeOf({32, 4}, 8, 50), Collective::AllReduce, 1 << 20);
    const auto refuses = [&](std::uint64_t bytes, int algorithms, int protocols, float value) {
        Table table = good;
        table.cost[1][1] = value;
        const Table before = table;
        const bool done =
            reprice(pricing, Collective::AllReduce, bytes, 1, table.data(), algorithms, protocols);
        return !done && std::memcmp(&table, &before, sizeof table) == 0;
    };
    EXPECT_FALSE(refuses(1 << 20, 7, 3, 100.F));
    EXPECT_TRUE(refuses(0, 7, 3, 100.F));
    EXPECT_TRUE(refuses(UINT64_MAX, 7, 3, 100.F));
    for (const int algorithms : {-1, 0, 1, 17, 1 << 30})
        EXPECT_TRUE(refuses(1 << 20, algorithms, 3, 100.F));
    for (const int protocols : {-3, 0, 2, 9}) EXPECT_TRUE(refuses(1 << 20, 2, protocols, 100.F));
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(), 0.F, 1e13F})
        EXPECT_TRUE(refuses(1 << 20, 7, 3, bad)) << bad;
    EXPECT_FALSE(reprice(pricing, Collective::AllReduce, 1 << 20, 1, nullptr, 7, 3));
    EXPECT_FALSE(
        reprice(pricing, static_cast<Collective>(9), 1 << 20, 1, Table(good).data(), 7, 3));
    // Nothing available at all is no error, and stays so.
    Table none;
    EXPECT_TRUE(applies(pricing, Collective::AllReduce, 1 << 20, none));
    EXPECT_EQ(none, Table());
}

TEST(WrongInput, ImpossibleSizesStandAside) {
    Pricing pricing;
    const FabricProfile profile = profileOf(4, 30, 20, 50);
    EXPECT_EQ(makePricing(profile, {0, 0}, pricing), Aside::BadSize);
    EXPECT_EQ(makePricing(profile, {8, 0}, pricing), Aside::BadSize);
    EXPECT_EQ(makePricing(profile, {2, 4}, pricing), Aside::BadSize);
    EXPECT_EQ(makePricing(profile, {UINT32_MAX, 4}, pricing), Aside::BadSize);
    FabricProfile neutral = profile;
    neutral.neutral = true;
    EXPECT_EQ(makePricing(neutral, {32, 4}, pricing), Aside::Neutral);
    FabricProfile empty;
    empty.nodes = 4;
    EXPECT_EQ(makePricing(empty, {32, 4}, pricing), Aside::Unmeasured);
    FabricProfile bad = profile;
    std::snprintf(bad.rules, sizeof bad.rules, "nonsense");
    EXPECT_EQ(makePricing(bad, {32, 4}, pricing), Aside::BadRules);
    for (int a = 0; a <= static_cast<int>(Aside::BadRules); ++a)
        EXPECT_GT(std::strlen(describe(static_cast<Aside>(a))), 5U);
}

TEST(WrongInput, ExtremeFiguresStayFinite) {
    std::mt19937_64 random(3);
    for (int i = 0; i < 3000; ++i) {
        FabricProfile p;
        p.nodes = 1000000;
        p.rails = static_cast<std::uint32_t>(random() % 33);
        p.rail_nominal_mbps = static_cast<std::uint32_t>(random() % 1000000001);
        for (PatternFigures* f : {&p.ring, &p.tree})
            *f = {static_cast<std::uint32_t>(random() % 1000000001),
                  static_cast<std::uint32_t>(random() % 1000000001),
                  static_cast<std::uint32_t>(random() % 1000000001),
                  static_cast<std::uint32_t>(random() % 1000000001)};
        const auto nodes = static_cast<std::uint32_t>(2 + random() % 999999);
        const auto ranks = static_cast<std::uint32_t>(nodes + random() % ((1U << 24) - nodes));
        const Pricing pricing = pricingOf(p, {ranks, nodes});
        Table table;
        for (auto& row : table.cost)
            for (float& us : row) us = std::exp2(static_cast<float>(random() % 39));
        const std::uint64_t bytes = std::uint64_t{1} << (random() % 49);
        ASSERT_TRUE(reprice(pricing, Collective::AllReduce, bytes,
                            static_cast<int>(random() % 5000), table.data(), 7, 3));
        for (const auto& row : table.cost)
            for (const float us : row) ASSERT_TRUE(std::isfinite(us) && us > 0);
    }
}

}  // namespace
}  // namespace rdmatune::model
