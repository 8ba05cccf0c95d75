// A saved topology over the devices of a live machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/topology/cases.hpp"
#include "tests/unit/topology/sys_tree.hpp"

namespace rdmatune {
namespace {

using testing::distanceTo;
using ::testing::ElementsAre;
using testing::fixture;
using testing::nearest;
using testing::noted;
using testing::SysTree;

/// The virtual machine that nccl-virtual-switches.xml is for, as its guest sees it: every device
/// in a domain of its own, no bridge at all.
class Guest : public ::testing::Test {
  protected:
    Guest() {
        tree.numa(0, "0-7", 0);
        tree.numa(1, "8-15", 1);
        tree.write("proc/cpuinfo", "flags\t\t: fpu hypervisor");
        for (int n = 1; n <= 3; ++n) {
            const std::string gpu = "000" + std::to_string(n) + ":00:00.0";
            const std::string hca = "010" + std::to_string(n) + ":00:00.0";
            tree.pci("pci000" + std::to_string(n) + ":00", gpu, "0x030200", "0x10de", "0x20b0", -1);
            tree.pci("pci010" + std::to_string(n) + ":00", hca, "0x020700", "0x15b3", "0x101c", -1);
            tree.verbs("mlx5_" + std::to_string(3 - n), hca);
        }
    }
    SysTree tree;
};

TEST_F(Guest, AloneIsFlat) {
    const Node node = tree.read();
    EXPECT_TRUE(node.flat);
    EXPECT_EQ(node.notes.size(), 2U);  // and no driver
}

TEST_F(Guest, ProvidersFileGivesTheTree) {
    const Node node = withSavedTopology(tree.read(), fixture("nccl-virtual-switches.xml"));
    EXPECT_EQ(node.source, TopologySource::Live);
    EXPECT_FALSE(node.flat);
    EXPECT_FALSE(noted(node, "virtual machine"));
    ASSERT_EQ(node.gpus.size(), 3U);
    EXPECT_THAT(nearest(node, 0), ElementsAre("mlx5_2"));  // 0101
    EXPECT_THAT(nearest(node, 1), ElementsAre("mlx5_0"));  // 0103
    EXPECT_THAT(nearest(node, 2), ElementsAre("mlx5_1"));  // 0102
    EXPECT_EQ(distanceTo(node, 0, "mlx5_2"), "PIX");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "PHB");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_1"), "SYS");
    EXPECT_EQ(node.gpus[2].numa, 1);
    EXPECT_EQ(node.gpus[2].cpus.str(), "8-15");
    EXPECT_EQ(node.gpus[0].pci_path.size(), 1U);
    EXPECT_EQ(node.hcas[0].state, PortState::Active);  // live
    EXPECT_EQ(node.bridges.size(), 3U);
    const Result<Node> back = nodeFromJson(nodeToJson(node), "overlay");
    ASSERT_TRUE(back.ok());
    EXPECT_TRUE(*back == node);
}

TEST_F(Guest, DevicesThatOnlyOneSideHas) {
    tree.pci("pci0009:00", "0009:00:00.0", "0x030200", "0x10de", "0x20b0", -1);
    std::filesystem::remove_all(tree.path("sys/class/infiniband/mlx5_1"));
    const Node node = withSavedTopology(tree.read(), fixture("nccl-virtual-switches.xml"));
    ASSERT_EQ(node.gpus.size(), 4U);
    ASSERT_EQ(node.hcas.size(), 2U);
    EXPECT_TRUE(noted(node, "Not in the saved topology, placed as the machine shows it: GPU3."));
    EXPECT_TRUE(noted(node, "In the saved topology but not on this machine: 0102:00:00.0."));
    EXPECT_EQ(distanceTo(node, 1, "mlx5_0"), "PIX");
}

TEST_F(Guest, FileOfAnotherMachineIsNotUsed) {
    const Node live = tree.read();
    const Node node = withSavedTopology(live, fixture("hwloc-v2-four-switches.xml"));
    EXPECT_EQ(node.distance, live.distance);
    EXPECT_TRUE(node.flat);
    EXPECT_TRUE(noted(node, "none of this machine's PCI addresses"));
}

TEST_F(Guest, FilesAreReadInOneGo) {
    const std::string file = (testing::fixtures() / "nccl-virtual-switches.xml").string();
    const Result<Node> node = readThisMachineThrough(file, tree.roots());
    ASSERT_TRUE(node.ok()) << node.error().message;
    EXPECT_EQ(distanceTo(*node, 1, "mlx5_0"), "PIX");
    EXPECT_FALSE(readThisMachineThrough("/nonexistent.xml", tree.roots()).ok());
}

TEST(Overlay, MachineWithNothingIsTheFile) {
    const SysTree tree;
    tree.write("proc/sys/kernel/hostname", "here");
    const Node saved = fixture("hwloc-v2-four-switches.xml");
    Node node = withSavedTopology(tree.read(), saved);
    EXPECT_EQ(node.hostname, "here");
    node.hostname = saved.hostname;
    EXPECT_TRUE(node == saved);
}

}  // namespace
}  // namespace rdmatune
