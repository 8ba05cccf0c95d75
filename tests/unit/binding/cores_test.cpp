#include "tuner/binding/cores.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/support/node_builder.hpp"

namespace rdmatune {
namespace {

using testing::NodeBuilder;
using From = CoreShare::From;

CpuSet cpus(const std::string& text) {
    return *CpuSet::parse(text);
}

std::vector<std::string> texts(const std::vector<CoreShare>& shares) {
    std::vector<std::string> out;
    for (const CoreShare& share : shares) out.push_back(share.cpus.str());
    return out;
}

using Texts = std::vector<std::string>;

TEST(Cores, SiblingsStayTogetherInAdjacentBlocks) {
    const Node node = testing::dgxLike();
    const auto shares = splitCores(node, {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}, cpus("0-63"));
    EXPECT_EQ(texts(shares), (Texts{"0-3,32-35", "4-7,36-39", "8-11,40-43", "12-15,44-47",
                                    "16-19,48-51", "20-23,52-55", "24-27,56-59", "28-31,60-63"}));
}

TEST(Cores, UnevenNumbersDifferByOneCore) {
    const Node node = testing::dgxLike();
    const auto shares = splitCores(node, {{0}, {1}, {2}}, cpus("0-15,32-47"));
    EXPECT_EQ(texts(shares), (Texts{"0-5,32-37", "6-10,38-42", "11-15,43-47"}));
}

TEST(Cores, OnlyAllowedOnesAreGiven) {
    const Node node = testing::dgxLike();
    const auto shares = splitCores(node, {{0}, {4}}, cpus("2-3,20"));
    EXPECT_EQ(texts(shares), (Texts{"2-3", "20"}));
    EXPECT_EQ(shares[0].from, From::Near);
}

TEST(Cores, NoneNearMeansOthersAndSaysSo) {
    const Node node = testing::dgxLike();
    const auto shares = splitCores(node, {{0}, {4}}, cpus("0-3"));
    EXPECT_EQ(shares[0].from, From::Near);
    EXPECT_EQ(shares[1].from, From::Elsewhere);
    EXPECT_FALSE(shares[0].cpus.empty());
    EXPECT_FALSE(shares[1].cpus.empty());
    EXPECT_TRUE((shares[0].cpus & shares[1].cpus).empty());
}

TEST(Cores, CpusNearNobodyGoToTheRankThatHasNoneNear) {
    const Node node = NodeBuilder()
                          .numa(0, "0-3")
                          .numa(1, "4-7")
                          .numa(2, "8-11")
                          .gpus(1, "0-3")
                          .gpus(1, "4-7")
                          .build();
    const auto shares = splitCores(node, {{0}, {1}}, cpus("0-3,8-11"));
    EXPECT_EQ(texts(shares), (Texts{"0-3", "8-11"}));
    EXPECT_EQ(shares[1].from, From::Elsewhere);
}

TEST(Cores, HyperthreadsAreSplitWhenCoresDoNotSuffice) {
    const Node node = NodeBuilder().numa(0, "0-1,2-3").gpus(4, "0-3").build();
    // One run of four: no siblings to be told apart, each CPU is a core.
    EXPECT_EQ(texts(splitCores(node, {{0}, {1}, {2}, {3}}, cpus("0-3"))),
              (Texts{"0", "1", "2", "3"}));
    const Node smt = NodeBuilder().numa(0, "0-1,8-9").gpus(4, "0-1,8-9").build();
    EXPECT_EQ(texts(splitCores(smt, {{0}, {1}, {2}, {3}}, smt.cpus)), (Texts{"0", "1", "8", "9"}));
}

TEST(Cores, TooFewAreUsedInCommon) {
    const Node node =
        NodeBuilder().numa(0, "0-1").numa(1, "2-3").gpus(3, "0-1").gpus(1, "2-3").build();
    const auto shares = splitCores(node, {{0}, {1}, {2}, {3}}, cpus("0-3"));
    EXPECT_EQ(texts(shares), (Texts{"0-1", "0-1", "0-1", "2-3"}));
    EXPECT_TRUE(shares[0].shared);
    EXPECT_FALSE(shares[3].shared);
}

TEST(Cores, WithoutGpusAnEqualPartByNumaNode) {
    const Node node = NodeBuilder().numa(0, "0,2,4,6").numa(1, "1,3,5,7").build();
    const auto shares = splitCores(node, {{}, {}}, node.cpus);
    EXPECT_EQ(texts(shares), (Texts{"0,2,4,6", "1,3,5,7"}));
    EXPECT_EQ(shares[0].from, From::Anywhere);
}

TEST(Cores, NothingAllowedLeavesTheAffinityAlone) {
    EXPECT_TRUE(splitCores(testing::dgxLike(), {{0}}, CpuSet{})[0].cpus.empty());
}

TEST(Cores, NumaNodeStandsInForAGpuWithoutCpuList) {
    const Node node = NodeBuilder().numa(0, "0-3").numa(1, "4-7").gpus(1, "", 1).build();
    EXPECT_EQ(cpusNear(node, 0).str(), "4-7");
}

TEST(Cores, RandomLayoutsGiveEachCpuOnceAndFairly) {
    std::mt19937 random(99);
    for (int round = 0; round < 400; ++round) {
        NodeBuilder builder;
        builder.cpus("0-23");
        const int ranks = 1 + static_cast<int>(random() % 6);
        std::vector<std::vector<int>> gpus;
        std::vector<CpuSet> near;
        for (int r = 0; r < ranks; ++r) {
            const int first = static_cast<int>(random() % 3) * 6;
            const int last = first + (random() % 2 == 0 ? 5 : 11);  // sets may overlap
            builder.gpus(1, std::to_string(first) + "-" + std::to_string(last));
            near.push_back(cpus(std::to_string(first) + "-" + std::to_string(last)));
            gpus.push_back({r});
        }
        const Node node = builder.build();
        const auto shares = splitCores(node, gpus, node.cpus);
        CpuSet given;
        CpuSet wanted;
        for (int r = 0; r < ranks; ++r) {
            ASSERT_FALSE(shares[r].cpus.empty());
            ASSERT_TRUE((shares[r].cpus - near[r]).empty());
            ASSERT_TRUE((shares[r].cpus & given).empty());
            given = given | shares[r].cpus;
            wanted = wanted | near[r];
            for (int other = 0; other < r; ++other)
                if (near[other] == near[r]) {
                    const auto a = static_cast<int>(shares[r].cpus.size());
                    const auto b = static_cast<int>(shares[other].cpus.size());
                    ASSERT_LE(std::abs(a - b), 1);
                }
        }
        ASSERT_EQ(given, wanted);
    }
}

}  // namespace
}  // namespace rdmatune
