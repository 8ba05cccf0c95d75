// The saved machines that come with the project, with what a person would say of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/topology/cases.hpp"

namespace rdmatune {
namespace {

using testing::distanceTo;
using ::testing::ElementsAre;
using testing::fixture;
using testing::hcaNamed;
using testing::nearest;
using testing::noted;

TEST(HwlocV2, FourSwitches) {
    const Node node = fixture("hwloc-v2-four-switches.xml");
    EXPECT_EQ(node.source, TopologySource::HwlocXml);
    EXPECT_EQ(node.hostname, "gpu-a");
    // The management controller's VGA chip is none.
    ASSERT_EQ(node.gpus.size(), 4U);
    ASSERT_EQ(node.hcas.size(), 6U);
    EXPECT_THAT(nearest(node, 0), ElementsAre("mlx5_3"));
    EXPECT_THAT(nearest(node, 1), ElementsAre("mlx5_0"));
    EXPECT_THAT(nearest(node, 2), ElementsAre("mlx5_2"));
    EXPECT_THAT(nearest(node, 3), ElementsAre("mlx5_1"));
    EXPECT_EQ(distanceTo(node, 0, "mlx5_3"), "PIX");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "NODE");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_2"), "SYS");
    EXPECT_FALSE(node.flat);
    EXPECT_EQ(node.cpus.str(), "0-7");
    ASSERT_EQ(node.numa.size(), 2U);
    EXPECT_EQ(node.numa[1].cpus.str(), "4-7");
    EXPECT_EQ(node.numa[1].package, 1);
}

TEST(HwlocV2, KnowsGpus) {
    const Gpu gpu = fixture("hwloc-v2-four-switches.xml").gpus.at(2);
    EXPECT_EQ(gpu.index, 2);
    EXPECT_EQ(gpu.pci->str(), "0000:94:00.0");
    EXPECT_EQ(gpu.uuid, "GPU-20000000-aaaa-bbbb-cccc-000000000002");
    EXPECT_EQ(gpu.vendor, "nvidia");
    EXPECT_EQ(gpu.model, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(gpu.numa, 1);
    EXPECT_EQ(gpu.package, 1);
    EXPECT_EQ(gpu.cpus.str(), "4-7");
    ASSERT_EQ(gpu.pci_path.size(), 3U);
    EXPECT_EQ(gpu.pci_path[0].str(), "0000:90:01.0");
    EXPECT_EQ(gpu.pci_path[1].str(), "0000:91:00.0");
    EXPECT_EQ(gpu.pci_path[2].str(), "0000:92:01.0");
}

TEST(HwlocV2, KnowsPorts) {
    const Node node = fixture("hwloc-v2-four-switches.xml");
    const Hca& up = hcaNamed(node, "mlx5_2");
    EXPECT_EQ(up.state, PortState::Active);
    EXPECT_EQ(up.link_layer, LinkLayer::InfiniBand);
    EXPECT_EQ(up.lid, 0x22);
    EXPECT_EQ(up.netdev, "ib2");
    EXPECT_EQ(up.sys_image_guid, "0c42:a103:00a0:1020");
    ASSERT_EQ(up.gids.size(), 1U);
    EXPECT_EQ(up.gids[0].type, GidType::InfiniBand);
    EXPECT_TRUE(up.gids_known);
    EXPECT_EQ(hcaNamed(node, "mlx5_1").state, PortState::Down);
}

TEST(HwlocV2, TwoFunctionsOfOneCardStayTwo) {
    const Node node = fixture("hwloc-v2-four-switches.xml");
    const Hca& first = hcaNamed(node, "mlx5_4");
    const Hca& second = hcaNamed(node, "mlx5_5");
    EXPECT_EQ(first.link_layer, LinkLayer::Ethernet);
    EXPECT_EQ(first.sys_image_guid, second.sys_image_guid);
    EXPECT_NE(first.node_guid, second.node_guid);
    EXPECT_EQ(first.netdev, "eth0");
    ASSERT_EQ(first.gids.size(), 4U);
    EXPECT_EQ(first.gids[2].type, GidType::RoceV1);
    EXPECT_EQ(first.gids[3].type, GidType::RoceV2);
    EXPECT_EQ(first.gids[3].value, "0000:0000:0000:0000:0000:ffff:c0a8:0105");
}

TEST(HwlocV2, KeepsOnlyBridgesOnTheWay) {
    const Node node = fixture("hwloc-v2-four-switches.xml");
    EXPECT_EQ(node.bridges.size(), 4U * 4U + 1U);  // each switch and its root port, the Ethernet's
    for (const PciBridge& bridge : node.bridges) EXPECT_NE(bridge.vendor_device, "1a03:1150");
}

TEST(HwlocV2, CascadedSwitchesAndTwoPorts) {
    const Node node = fixture("hwloc-v2-cascade.xml");
    ASSERT_EQ(node.gpus.size(), 3U);
    ASSERT_EQ(node.hcas.size(), 2U);
    EXPECT_EQ(node.hcas[0].label(), "mlx5_0");
    EXPECT_EQ(node.hcas[1].label(), "mlx5_0:2");
    EXPECT_EQ(node.hcas[0].pci, node.hcas[1].pci);
    EXPECT_EQ(node.hcas[0].state, PortState::Active);
    EXPECT_EQ(node.hcas[1].state, PortState::Init);
    EXPECT_EQ(node.hcas[1].netdev, "ib1");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "PXB");
    EXPECT_EQ(distanceTo(node, 1, "mlx5_0"), "PIX");
    EXPECT_EQ(distanceTo(node, 2, "mlx5_0"), "PHB");
    EXPECT_EQ(distanceTo(node, 2, "mlx5_0:2"), "PHB");
    EXPECT_EQ(node.gpus[2].uuid, std::nullopt);
}

TEST(HwlocV2, AmdGpusWithSlingshot) {
    const Node node = fixture("hwloc-v2-amd-slingshot.xml");
    ASSERT_EQ(node.gpus.size(), 2U);
    EXPECT_EQ(node.gpus[0].vendor, "amd");
    EXPECT_EQ(node.gpus[0].uuid, "GPU-d2f0c1b4a5968778");
    EXPECT_EQ(node.gpus[0].minor, 0);
    EXPECT_EQ(node.gpus[1].uuid, std::nullopt);  // "redacted" is none
    EXPECT_EQ(node.gpus[1].minor, 1);
    EXPECT_TRUE(node.hcas.empty());
    EXPECT_TRUE(noted(node, "2 Slingshot"));
    EXPECT_FALSE(node.flat);
}

TEST(HwlocV2, FlatVirtualMachine) {
    const Node node = fixture("hwloc-v2-vm-flat.xml");
    ASSERT_EQ(node.gpus.size(), 2U);
    ASSERT_EQ(node.hcas.size(), 2U);
    EXPECT_EQ(distanceTo(node, 1, "mlx5_1"), "PHB");
    EXPECT_TRUE(node.flat);
    EXPECT_TRUE(noted(node, "no PCIe switch"));
}

TEST(HwlocV1, TwoSockets) {
    const Node node = fixture("hwloc-v1-two-sockets.xml");
    ASSERT_EQ(node.gpus.size(), 2U);
    ASSERT_EQ(node.hcas.size(), 2U);
    EXPECT_EQ(distanceTo(node, 0, "mlx5_1"), "PIX");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "SYS");
    EXPECT_EQ(distanceTo(node, 1, "mlx5_0"), "PIX");
    EXPECT_EQ(node.gpus[1].numa, 1);
    EXPECT_EQ(node.gpus[1].cpus.str(), "2-3");
    EXPECT_EQ(hcaNamed(node, "mlx5_0").lid, 4);
}

TEST(NcclXml, SwitchesOfAProvider) {
    const Node node = fixture("nccl-virtual-switches.xml");
    EXPECT_EQ(node.source, TopologySource::NcclXml);
    ASSERT_EQ(node.gpus.size(), 3U);
    ASSERT_EQ(node.hcas.size(), 3U);
    EXPECT_FALSE(node.flat);
    EXPECT_EQ(node.hcas[1].name, "NIC1");
    EXPECT_EQ(node.hcas[1].pci->str(), "0102:00:00.0");
    EXPECT_EQ(node.hcas[1].link_layer, LinkLayer::InfiniBand);
    EXPECT_EQ(node.hcas[1].state, PortState::Unknown);
    EXPECT_FALSE(node.hcas[1].gids_known);
    EXPECT_THAT(nearest(node, 0), ElementsAre("NIC0"));
    EXPECT_THAT(nearest(node, 1), ElementsAre("NIC2"));
    EXPECT_THAT(nearest(node, 2), ElementsAre("NIC1"));
    EXPECT_EQ(distanceTo(node, 0, "NIC2"), "PHB");
    EXPECT_EQ(distanceTo(node, 0, "NIC1"), "SYS");
    EXPECT_EQ(node.gpus[2].cpus.str(), "8-15");
    EXPECT_TRUE(noted(node, "NIC0, NIC1"));
}

TEST(NcclXml, Dump) {
    const Node node = fixture("nccl-dump.xml");
    ASSERT_EQ(node.gpus.size(), 2U);
    ASSERT_EQ(node.hcas.size(), 3U);
    const Hca& hca = hcaNamed(node, "mlx5_1");
    EXPECT_EQ(hca.rate_gbps, 400);
    EXPECT_EQ(hca.state, PortState::Active);
    EXPECT_EQ(hca.sys_image_guid, "0c42:a400:00ea:0e01");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_1"), "PIX");
    EXPECT_EQ(distanceTo(node, 1, "mlx5_1"), "PXB");
    EXPECT_EQ(node.gpus[1].link.width, 8);
    EXPECT_EQ(node.gpus[1].link.speed_gts, 32);
    // One merged device of NCCL's is two HCAs, each with half of the rate.
    EXPECT_EQ(hcaNamed(node, "mlx5_2").rate_gbps, 100);
    EXPECT_EQ(hcaNamed(node, "mlx5_3").rate_gbps, 100);
    EXPECT_EQ(distanceTo(node, 0, "mlx5_3"), "PHB");
    EXPECT_TRUE(noted(node, "eth0"));
}

TEST(TopoMatrix, TabsColoursAndAGpuNumaColumn) {
    const Node node = fixture("matrix-tabs.txt");
    EXPECT_EQ(node.source, TopologySource::TopoMatrix);
    ASSERT_EQ(node.gpus.size(), 4U);
    ASSERT_EQ(node.hcas.size(), 3U);
    EXPECT_EQ(node.hcas[1].name, "mlx5_2");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "PIX");
    EXPECT_EQ(distanceTo(node, 1, "mlx5_0"), "PXB");
    EXPECT_EQ(distanceTo(node, 1, "mlx5_2"), "PHB");
    EXPECT_EQ(distanceTo(node, 3, "mlx5_1"), "NODE");
    EXPECT_EQ(distanceTo(node, 3, "mlx5_2"), "SYS");
    EXPECT_EQ(node.gpus[2].cpus.str(), "16-31,48-63");
    EXPECT_EQ(node.gpus[2].numa, 1);
    EXPECT_EQ(node.gpus[2].pci, std::nullopt);
    EXPECT_EQ(node.cpus.size(), 64U);
    EXPECT_EQ(node.hcas[2].numa, 1);
    EXPECT_TRUE(node.notes.empty());
}

TEST(TopoMatrix, CutRowsAreMirroredWherePossible) {
    const Node node = fixture("matrix-cut.txt");
    ASSERT_EQ(node.gpus.size(), 4U);
    ASSERT_EQ(node.hcas.size(), 2U);
    EXPECT_EQ(node.hcas[0].name, "ibp65s0");
    EXPECT_EQ(node.hcas[0].link_layer, LinkLayer::InfiniBand);
    EXPECT_EQ(node.hcas[1].name, "NIC4");
    EXPECT_EQ(distanceTo(node, 0, "ibp65s0"), "PXB");
    EXPECT_EQ(distanceTo(node, 1, "ibp65s0"), "PIX");   // from NIC3's row
    EXPECT_EQ(distanceTo(node, 2, "NIC4"), "PXB");      // GPU6's row ends before
    EXPECT_EQ(distanceTo(node, 3, "ibp65s0"), "NODE");  // no row of GPU7
    EXPECT_EQ(distanceTo(node, 3, "NIC4"), "?");        // and NIC4's is cut
    EXPECT_EQ(node.gpus[1].numa, 0);                    // where its NIC is
    EXPECT_EQ(node.gpus[1].cpus.str(), "0-7,16-23");
    EXPECT_TRUE(noted(node, "GPU5, GPU6, GPU7 are cut or missing"));
    EXPECT_TRUE(noted(node, "Distances of GPU7"));
    EXPECT_TRUE(noted(node, "mlx5_9 (MGMT)"));
    EXPECT_TRUE(noted(node, "does not begin with GPU0"));
}

TEST(TopoMatrix, DevicesNamedInTheHeader) {
    const Node node = fixture("matrix-old.txt");
    ASSERT_EQ(node.hcas.size(), 2U);
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "PIX");
    EXPECT_EQ(distanceTo(node, 1, "mlx5_0"), "PHB");
    EXPECT_EQ(distanceTo(node, 1, "mlx4_0"), "SYS");  // "SOC" of old drivers
    EXPECT_EQ(node.gpus[0].cpus.str(), "0-9,20-29");
    EXPECT_EQ(node.cpus.size(), 20U);
}

}  // namespace
}  // namespace rdmatune
