// Machines that people published. They are not part of the project: without them these tests skip.
#include "tests/unit/topology/cases.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rdmatune {
namespace {

using ::testing::Contains;
using testing::distanceTo;
using ::testing::ElementsAre;
using testing::hcaNamed;
using testing::mustRead;
using testing::nearest;
using testing::noted;
using ::testing::UnorderedElementsAre;

class Cases : public ::testing::Test {
  protected:
    void SetUp() override {
        if (testing::cases().empty())
            GTEST_SKIP() << "no published machines here; RDMA_TUNE_CASES names their folder";
    }
    static Node read(const std::string& name) { return mustRead(testing::cases() / name); }

    /// GPU i's nearest HCA for all GPUs, where that is exactly one and behind PCIe switches only.
    static std::vector<std::string> partners(const Node& node) {
        std::vector<std::string> out;
        for (std::size_t g = 0; g < node.gpus.size(); ++g) {
            const auto labels = nearest(node, g);
            const std::string distance = distanceTo(node, g, labels.at(0));
            const bool own = labels.size() == 1 && (distance == "PIX" || distance == "PXB");
            out.push_back(own ? labels[0] : "none");
        }
        return out;
    }
};

TEST_F(Cases, EveryFileIsRead) {
    int files = 0;
    for (const char* folder : {"hwloc", "nccl-xml", "topo-m"})
        for (const auto& file : testing::filesIn(testing::cases() / folder)) {
            const Node node = mustRead(file);
            EXPECT_FALSE(node.gpus.empty()) << file;
            EXPECT_EQ(node.distance.size(), node.gpus.size()) << file;
            EXPECT_FALSE(node.flat) << file;
            ++files;
        }
    EXPECT_GE(files, 20);
}

TEST_F(Cases, JuwelsBoosterNodesNameTheSameSlotsDifferently) {
    const Node one = read("hwloc/topo.jwb0001.xml");  // hwloc XML version 1
    const Node four = read("hwloc/topo.jwb0004.xml");
    ASSERT_EQ(one.gpus.size(), 4U);
    ASSERT_EQ(one.hcas.size(), 4U);
    ASSERT_EQ(four.gpus.size(), 4U);
    EXPECT_THAT(partners(one), ElementsAre("mlx5_1", "mlx5_0", "mlx5_3", "mlx5_2"));
    EXPECT_THAT(partners(four), ElementsAre("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"));
    for (std::size_t g = 0; g < 4; ++g) {
        EXPECT_EQ(one.gpus[g].pci, four.gpus[g].pci);
        EXPECT_EQ(one.hcas[g].pci, four.hcas[g].pci);
        EXPECT_EQ(one.gpus[g].cpus, four.gpus[g].cpus);
        EXPECT_EQ(one.hcas[g].state, PortState::Active);
    }
    EXPECT_EQ(one.numa.size(), 8U);
    EXPECT_EQ(one.gpus[0].numa, 3);
    EXPECT_EQ(hcaNamed(one, "mlx5_0").lid, 0x334);
}

TEST_F(Cases, Cts1PascalHasTwoGpusOnOneHca) {
    const Node node = read("hwloc/cts1-pascal.xml");
    ASSERT_EQ(node.gpus.size(), 2U);
    ASSERT_EQ(node.hcas.size(), 1U);
    EXPECT_THAT(partners(node), ElementsAre("mlx5_0", "mlx5_0"));
    EXPECT_EQ(node.gpus[0].uuid, "GPU-affad486-897e-9778-18e8-26a7127927a8");
    EXPECT_EQ(node.gpus[1].uuid, "GPU-fa7cef9c-220f-b6d7-1bb6-ea1e99d3ad0a");
    EXPECT_EQ(node.gpus[0].model, "Tesla P100-PCIE-16GB");
}

TEST_F(Cases, CoralLassenIsPowerWithTwoDualFunctionHcas) {
    const Node node = read("hwloc/coral-lassen.xml");
    ASSERT_EQ(node.gpus.size(), 4U);
    ASSERT_EQ(node.hcas.size(), 4U);
    EXPECT_THAT(nearest(node, 0), ElementsAre("mlx5_0", "mlx5_1"));
    EXPECT_THAT(nearest(node, 3), ElementsAre("mlx5_2", "mlx5_3"));
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "NODE");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_2"), "SYS");
    EXPECT_EQ(hcaNamed(node, "mlx5_0").sys_image_guid, hcaNamed(node, "mlx5_1").sys_image_guid);
    // One card, reached from both sockets (multi-host).
    EXPECT_EQ(hcaNamed(node, "mlx5_0").sys_image_guid, hcaNamed(node, "mlx5_2").sys_image_guid);
    EXPECT_EQ(hcaNamed(node, "mlx5_3").netdev, "hsi3");
    for (const Gpu& gpu : node.gpus) EXPECT_TRUE(gpu.uuid.has_value());
}

TEST_F(Cases, TiogaHasAmdGpusAndNoVerbs) {
    const Node node = read("hwloc/eas-tioga.xml");
    ASSERT_EQ(node.gpus.size(), 8U);
    EXPECT_TRUE(node.hcas.empty());
    EXPECT_EQ(node.gpus[0].vendor, "amd");
    EXPECT_EQ(node.gpus[0].uuid, std::nullopt);  // removed before it was published
    EXPECT_EQ(node.gpus[0].numa, 3);
    EXPECT_EQ(node.gpus[0].cpus.str(), "48-55,112-119");  // its own L3 cache
    EXPECT_TRUE(noted(node, "4 Slingshot"));
}

TEST_F(Cases, G4dnMetalHasNoSwitchAndIsNotVirtual) {
    const Node node = read("hwloc/g4dnmetal.xml");
    ASSERT_EQ(node.gpus.size(), 8U);
    ASSERT_EQ(node.hcas.size(), 1U);
    EXPECT_EQ(distanceTo(node, 0, "rdmap197s0"), "SYS");
    EXPECT_EQ(distanceTo(node, 7, "rdmap197s0"), "NODE");
    EXPECT_EQ(node.hcas[0].link_layer, LinkLayer::Unknown);  // EFA
    EXPECT_EQ(node.gpus[7].uuid, "GPU-688323de-3533-d2ca-844c-af1c0f723c87");
}

TEST_F(Cases, AwsP4dHasTwoGpusForEachNic) {
    const Node node = read("nccl-xml/aws-p4d-24xl-topo.xml");
    ASSERT_EQ(node.gpus.size(), 8U);
    ASSERT_EQ(node.hcas.size(), 4U);
    EXPECT_THAT(partners(node),
                ElementsAre("NIC0", "NIC0", "NIC1", "NIC1", "NIC2", "NIC2", "NIC3", "NIC3"));
    EXPECT_EQ(node.gpus[0].cpus.str(), "0-23,48-71");
    EXPECT_EQ(node.hcas[0].pci->str(), "0000:10:1b.0");
}

TEST_F(Cases, AzureNdv4HasTwoGpusAndTwoHcasOnEachSwitch) {
    const Node node = read("nccl-xml/azure-ndv4-topo.xml");
    ASSERT_EQ(node.gpus.size(), 8U);
    ASSERT_EQ(node.hcas.size(), 8U);
    for (std::size_t g = 0; g < 8; ++g) {
        const auto near = nearest(node, g);
        ASSERT_EQ(near.size(), 2U);
        EXPECT_EQ(distanceTo(node, g, near[0]), "PIX");
        EXPECT_EQ(hcaNamed(node, near[0]).numa, node.gpus[g].numa);
        EXPECT_EQ(hcaNamed(node, near[0]).link_layer, LinkLayer::InfiniBand);
    }
    // GPU 0003:00:00.0 shares a switch with 0103:00:00.0 and 0104:00:00.0.
    EXPECT_EQ(node.gpus[2].pci->str(), "0003:00:00.0");
    EXPECT_THAT(nearest(node, 2), ElementsAre("NIC2", "NIC3"));
    EXPECT_EQ(hcaNamed(node, "NIC2").pci->str(), "0103:00:00.0");
}

TEST_F(Cases, OracleFileHasSwitchesThoughItIsCalledFlattened) {
    const Node node = read("nccl-xml/oci-topo-flattened.xml");
    ASSERT_EQ(node.gpus.size(), 8U);
    ASSERT_EQ(node.hcas.size(), 8U);
    for (std::size_t g = 0; g < 8; ++g) {
        EXPECT_EQ(nearest(node, g).size(), 2U);
        EXPECT_EQ(distanceTo(node, g, nearest(node, g)[0]), "PIX");
    }
    EXPECT_EQ(node.gpus[0].numa, 3);
    EXPECT_EQ(node.gpus[0].cpus.str(), "24-31,88-95");
}

TEST_F(Cases, RcclTopologyOfFourPlusFour) {
    const Node node = read("nccl-xml/topo_4p2h.xml");
    ASSERT_EQ(node.gpus.size(), 8U);
    ASSERT_EQ(node.hcas.size(), 1U);
    EXPECT_EQ(node.gpus[0].vendor, "amd");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "PXB");
    EXPECT_EQ(distanceTo(node, 4, "mlx5_0"), "PHB");
    EXPECT_EQ(node.hcas[0].rate_gbps, 100);
    EXPECT_EQ(node.hcas[0].sys_image_guid, "506b:4b03:0027:bbf2");
}

TEST_F(Cases, Matrix01) {
    const Node node = read("topo-m/01-hgx-h200-4cx7-baremetal.txt");
    ASSERT_EQ(node.gpus.size(), 8U);
    EXPECT_THAT(partners(node), ElementsAre("mlx5_2", "mlx5_2", "mlx5_3", "mlx5_3", "mlx5_4",
                                            "mlx5_4", "mlx5_5", "mlx5_5"));
    EXPECT_EQ(distanceTo(node, 0, "mlx5_2"), "PXB");
    EXPECT_EQ(distanceTo(node, 1, "mlx5_2"), "PIX");
    EXPECT_EQ(node.gpus[4].numa, 2);
    EXPECT_EQ(node.gpus[4].cpus.str(), "48-71");
}

TEST_F(Cases, Matrix03LeavesTheManagementNicOut) {
    const Node node = read("topo-m/03-4xh200nvl-2cx7-rail-plus-oob.txt");
    EXPECT_THAT(partners(node), ElementsAre("rocep80s0", "rocep80s0", "rocep203s0", "rocep203s0"));
    EXPECT_EQ(node.hcas[0].link_layer, LinkLayer::Ethernet);
    EXPECT_TRUE(noted(node, "rocep167s0f0"));
}

TEST_F(Cases, Matrix07HasBonds) {
    const Node node = read("topo-m/07-hgx-8gpu-8bond-roce-lag.txt");
    ASSERT_EQ(node.hcas.size(), 8U);
    for (const Hca& hca : node.hcas) EXPECT_TRUE(hca.is_bond);
    EXPECT_THAT(partners(node), Contains("mlx5_bond_7").Times(1));
    EXPECT_EQ(node.gpus[0].cpus.str(), "0-63,128-191");
}

TEST_F(Cases, Matrices08And11PairGpusWithTheirNumbers) {
    const Node eight = read("topo-m/08-4xA100-64GB-4hdr-single-socket.txt");
    EXPECT_THAT(partners(eight), ElementsAre("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"));
    const Node eleven = read("topo-m/11-hgx-8gpu-8nic-identity-PIX.txt");
    EXPECT_THAT(partners(eleven), ElementsAre("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4",
                                              "mlx5_5", "mlx5_6", "mlx5_7"));
    EXPECT_EQ(eleven.cpus.size(), 192U);
}

TEST_F(Cases, Matrices12And13And18AreFarFromTheirNics) {
    const Node twelve = read("topo-m/12-4xA100-1nic-other-socket.txt");
    for (std::size_t g = 0; g < 4; ++g) EXPECT_EQ(distanceTo(twelve, g, "rocep49s0"), "SYS");
    const Node thirteen = read("topo-m/13-8xRTX4090-pcie-dualport-ib.txt");
    ASSERT_EQ(thirteen.hcas.size(), 2U);
    EXPECT_EQ(thirteen.hcas[0].link_layer, LinkLayer::InfiniBand);
    EXPECT_EQ(distanceTo(thirteen, 7, "ibp177s0f1"), "NODE");
    const Node eighteen = read("topo-m/18-2gpu-dualport-nic-socket0.txt");
    EXPECT_EQ(distanceTo(eighteen, 0, "NIC0"), "NODE");
    EXPECT_EQ(distanceTo(eighteen, 1, "NIC1"), "SYS");
    EXPECT_EQ(eighteen.hcas[0].numa, 0);
    EXPECT_TRUE(noted(eighteen, "legend"));
}

TEST_F(Cases, Matrix23IsCutAndSaysSo) {
    const Node node = read("topo-m/23-dgx-a100-12nic-dualrail-nps4.txt");
    ASSERT_EQ(node.gpus.size(), 8U);
    ASSERT_EQ(node.hcas.size(), 12U);
    EXPECT_THAT(nearest(node, 0), UnorderedElementsAre("NIC0", "NIC1"));
    EXPECT_THAT(nearest(node, 2), UnorderedElementsAre("NIC2", "NIC3"));
    EXPECT_THAT(nearest(node, 4), UnorderedElementsAre("NIC6", "NIC7"));
    for (std::size_t g = 5; g < 8; ++g) EXPECT_EQ(distanceTo(node, g, "NIC4"), "?");
    EXPECT_TRUE(noted(node, "Distances of GPU5, GPU6, GPU7"));
    EXPECT_EQ(node.gpus[4].cpus.str(), "112-127,240-255");
}

TEST_F(Cases, Matrix26HasNoNics) {
    const Node node = read("topo-m/26-gb200-tray-no-nic-columns.txt");
    EXPECT_EQ(node.gpus.size(), 4U);
    EXPECT_TRUE(node.hcas.empty());
    EXPECT_EQ(node.gpus[3].cpus.str(), "72-143");
    EXPECT_TRUE(noted(node, "no NIC columns"));
}

}  // namespace
}  // namespace rdmatune
