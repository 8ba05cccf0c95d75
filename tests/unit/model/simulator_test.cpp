// The simulator that judges the model, judged by itself: bounds that physics gives, and the trees'
// shape.
#include "tests/model/simulator.hpp"

#include <gtest/gtest.h>

#include "tests/model/local.hpp"

namespace simulation {
namespace {

/// Ranks that cost nothing: what is left is the network.
Local freeRank() {
    Local local;
    local.rank_gbs = local.intra_gbs = 1e9;
    local.chunk_bytes = 4e6;
    local.least_chunk_bytes = 1e5;
    local.slices = 2;
    return local;
}

/// The same with so many slots that none is ever waited for.
Local freeSlots() {
    Local local = freeRank();
    local.slots = 256;
    return local;
}

Network networkOf(int nodes, int ranks, double alpha, double beta) {
    Network network;
    network.nodes = nodes;
    network.ranks_per_node = ranks;
    network.alpha_us = alpha;
    network.beta_gbs = beta;
    return network;
}

TEST(Simulator, SmallRingIsLatencyAlone) {
    // One rank per node: every step leaves the node.
    EXPECT_NEAR(ringTime(networkOf(8, 1, 10, 1e6), freeSlots(), Collective::AllReduce, 8),
                2 * 7 * 10.0, 0.1);
    EXPECT_NEAR(ringTime(networkOf(8, 1, 10, 1e6), freeSlots(), Collective::AllGather, 8), 7 * 10.0,
                0.1);
    // Several: the longest way leaves every node once in each passage.
    EXPECT_NEAR(ringTime(networkOf(4, 8, 10, 1e6), freeSlots(), Collective::AllGather, 8), 4 * 10.0,
                0.1);
}

TEST(Simulator, FewSlotsPaceARing) {
    // A sender waits for the receiver to free a slot: there and back for every window of steps.
    Local local = freeRank();
    local.slots = 2;
    const double bound = ringTime(networkOf(4, 8, 10, 1e6), freeSlots(), Collective::AllGather, 8);
    EXPECT_GT(ringTime(networkOf(4, 8, 10, 1e6), local, Collective::AllGather, 8), 2 * bound);
}

TEST(Simulator, SmallTreeIsItsDepth) {
    for (const auto& [nodes, depth] :
         {std::pair{2, 1}, {3, 2}, {4, 2}, {8, 3}, {9, 4}, {16, 4}, {64, 6}})
        EXPECT_NEAR(treeTime(networkOf(nodes, 1, 10, 1e6), freeRank(), 8), 2 * depth * 10.0, 0.1)
            << nodes;
}

TEST(Simulator, LargeMessagesNeedTheirBytes) {
    constexpr double kBytes = 4e9;
    for (const int nodes : {2, 4, 16}) {
        const Network network = networkOf(nodes, 4, 1, 100);
        const double ranks = nodes * 4;
        const double bound = 2 * (ranks - 1) / ranks * kBytes / 1e5;
        EXPECT_GE(ringTime(network, freeRank(), Collective::AllReduce, kBytes), bound);
        EXPECT_LE(ringTime(network, freeRank(), Collective::AllReduce, kBytes), bound * 1.05);
    }
    EXPECT_NEAR(treeTime(networkOf(2, 4, 1, 100), freeRank(), kBytes) / (kBytes / 1e5), 1, 0.05);
    EXPECT_NEAR(treeTime(networkOf(3, 4, 1, 100), freeRank(), kBytes) / (1.5 * kBytes / 1e5), 1,
                0.08);
    for (const int nodes : {4, 16, 64}) {
        const double share =
            treeTime(networkOf(nodes, 4, 1, 100), freeRank(), kBytes) / (2 * kBytes / 1e5);
        EXPECT_GE(share, 0.97) << nodes;  // the pace of a part is taken for that of the whole
        EXPECT_LE(share, 1.25) << nodes;
    }
}

TEST(Simulator, OneSlowNodeSlowsTheWholeRing) {
    Network network = networkOf(4, 2, 1, 100);
    const double even = ringTime(network, freeRank(), Collective::AllReduce, 1e9);
    network.node_beta_gbs[2] = 25;
    EXPECT_NEAR(ringTime(network, freeRank(), Collective::AllReduce, 1e9) / even, 4, 0.3);
}

TEST(Simulator, OneLongEdgeCountsOncePerPassage) {
    Network network = networkOf(6, 1, 2, 1e6);
    const double even = ringTime(network, freeSlots(), Collective::AllReduce, 8);
    network.edge_alpha_us[{3, 4}] = 52;
    EXPECT_NEAR(ringTime(network, freeSlots(), Collective::AllReduce, 8) - even, 2 * 50, 5);
}

TEST(Simulator, EqualNodesMayBeSimulatedByOne) {
    // The same network, once by its symmetry and once node by node.
    Network network = networkOf(4, 4, 7, 40);
    const Cluster cluster{4, 4, 12.5};
    for (const Protocol protocol : {Protocol::LL, Protocol::LL128, Protocol::Simple})
        for (const double bytes : {1e3, 1e6, 3e7}) {
            network.node_beta_gbs.clear();
            const double one =
                ringTime(network, localOfRing(cluster, protocol), Collective::AllReduce, bytes);
            network.node_beta_gbs[0] = network.beta_gbs;
            const double all =
                ringTime(network, localOfRing(cluster, protocol), Collective::AllReduce, bytes);
            EXPECT_NEAR(one / all, 1, 0.02);
        }
}

TEST(Simulator, DoubleTreeSharesTheWork) {
    for (int nodes = 2; nodes < 70; ++nodes) {
        std::vector<int> inner(static_cast<std::size_t>(nodes), 0);
        for (int tree = 0; tree < 2; ++tree) {
            const std::vector<int> parents = treeParents(tree, nodes);
            std::vector<int> children(static_cast<std::size_t>(nodes), 0);
            int roots = 0;
            for (int node = 0; node < nodes; ++node) {
                int steps = 0;
                for (int up = node; parents[static_cast<std::size_t>(up)] >= 0;
                     up = parents[static_cast<std::size_t>(up)])
                    ASSERT_LT(steps++, 8);
                const int parent = parents[static_cast<std::size_t>(node)];
                if (parent < 0)
                    ++roots;
                else
                    ++children[static_cast<std::size_t>(parent)];
            }
            EXPECT_EQ(roots, 1);
            for (int node = 0; node < nodes; ++node) {
                EXPECT_LE(children[static_cast<std::size_t>(node)], 2);
                if (children[static_cast<std::size_t>(node)] == 2)
                    ++inner[static_cast<std::size_t>(node)];
            }
        }
        for (const int count : inner)
            EXPECT_LE(count, 1) << nodes;  // two children in one tree at most
    }
}

}  // namespace
}  // namespace simulation
