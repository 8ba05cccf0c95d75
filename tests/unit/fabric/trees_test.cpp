#include "tuner/fabric/trees.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace rdmatune::fabric {
namespace {

std::vector<int> rootsOf(int tree, int nodes) {
    std::vector<int> roots;
    for (int node = 0; node < nodes; ++node)
        if (treePlace(tree, node, nodes).parent < 0) roots.push_back(node);
    return roots;
}

bool isInner(int tree, int node, int nodes) {
    const TreePlace place = treePlace(tree, node, nodes);
    return place.child[0] >= 0 || place.child[1] >= 0;
}

TEST(Trees, KnownShapeOfEightNodes) {
    EXPECT_EQ(treePlace(0, 0, 8), (TreePlace{-1, {4, -1}}));
    EXPECT_EQ(treePlace(0, 4, 8), (TreePlace{0, {2, 6}}));
    EXPECT_EQ(treePlace(0, 2, 8), (TreePlace{4, {1, 3}}));
    EXPECT_EQ(treePlace(0, 7, 8), (TreePlace{6, {-1, -1}}));
    // The mirror image: node 7 plays node 0's part.
    EXPECT_EQ(treePlace(1, 7, 8), (TreePlace{-1, {3, -1}}));
    EXPECT_EQ(treePlace(1, 3, 8), (TreePlace{7, {5, 1}}));
}

TEST(Trees, AnOddNumberMovesOnByOne) {
    EXPECT_EQ(treePlace(1, 1, 5), (TreePlace{-1, {0, -1}}));
    EXPECT_EQ(treePlace(0, 4, 5), (TreePlace{0, {2, -1}}));
    EXPECT_EQ(treePlace(1, 0, 5), (TreePlace{1, {3, -1}}));
}

TEST(Trees, OneNodeIsAlone) {
    for (const int tree : {0, 1}) EXPECT_EQ(treePlace(tree, 0, 1), TreePlace{});
}

class TreesOfAnySize : public testing::TestWithParam<int> {};

TEST_P(TreesOfAnySize, SpanAllNodesFromOneRootWithoutCircles) {
    const int nodes = GetParam();
    for (const int tree : {0, 1}) {
        ASSERT_EQ(rootsOf(tree, nodes).size(), 1U);
        for (int node = 0; node < nodes; ++node) {
            int steps = 0;
            for (int at = node; at >= 0; at = treePlace(tree, at, nodes).parent)
                ASSERT_LE(++steps, nodes) << "circle through " << node;
        }
    }
}

TEST_P(TreesOfAnySize, ParentsAndChildrenKnowEachOther) {
    const int nodes = GetParam();
    for (const int tree : {0, 1}) {
        int children = 0;
        for (int node = 0; node < nodes; ++node) {
            const TreePlace place = treePlace(tree, node, nodes);
            for (const int child : place.child) {
                if (child < 0) continue;
                ++children;
                ASSERT_LT(child, nodes);
                EXPECT_EQ(treePlace(tree, child, nodes).parent, node);
            }
            EXPECT_TRUE(place.child[0] != place.child[1] || place.child[0] == -1);
        }
        EXPECT_EQ(children, nodes - 1);
    }
}

TEST_P(TreesOfAnySize, AreAsDeepAsALogarithm) {
    const int nodes = GetParam();
    int limit = 1;
    while ((1 << limit) < nodes) ++limit;
    for (const int tree : {0, 1})
        for (int node = 0; node < nodes; ++node) {
            int depth = 0;
            for (int at = node; treePlace(tree, at, nodes).parent >= 0; ++depth)
                at = treePlace(tree, at, nodes).parent;
            ASSERT_LE(depth, limit + 1);
        }
}

TEST_P(TreesOfAnySize, ALeafOfOneTreeWorksInTheOther) {
    const int nodes = GetParam();
    if (nodes < 3) return;
    // Inner work in both trees falls only on the roots, which have a single child.
    std::set<int> both;
    for (int node = 0; node < nodes; ++node)
        if (isInner(0, node, nodes) && isInner(1, node, nodes)) both.insert(node);
    for (const int tree : {0, 1}) both.erase(rootsOf(tree, nodes).front());
    if (nodes % 2 == 0) {
        EXPECT_TRUE(both.empty());
    }
    EXPECT_LE(both.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, TreesOfAnySize, testing::Range(2, 131));
INSTANTIATE_TEST_SUITE_P(BigSizes, TreesOfAnySize, testing::Values(1000, 1023, 1024, 1025));

}  // namespace
}  // namespace rdmatune::fabric
