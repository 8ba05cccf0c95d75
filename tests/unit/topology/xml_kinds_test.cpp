// Kinds of machines in hwloc's and NCCL's XML, each as small as it can be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/topology/cases.hpp"

namespace rdmatune {
namespace {

using testing::distanceTo;
using ::testing::ElementsAre;
using testing::hcaNamed;
using testing::nearest;
using testing::noted;

Node mustReadText(const std::string& text) {
    const Result<Node> node = readTopologyText(text, "t.xml");
    EXPECT_TRUE(node.ok()) << node.error().message;
    return node.ok() ? *node : Node{};
}

/// One socket, one NUMA node, one host bridge with `inside`.
std::string hwloc(const std::string& inside) {
    return "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0xff\">"
           "<object type=\"Package\" os_index=\"0\" cpuset=\"0xff\">"
           "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0xff\"/>"
           "<object type=\"Bridge\" bridge_type=\"0-1\">" +
           inside + "</object></object></object></topology>";
}

std::string port(const std::string& address, const std::string& inside) {
    return "<object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"" + address +
           "\" pci_type=\"0604 [8086:352a] [0000:0000] 00\">" + inside + "</object>";
}

std::string function(const std::string& address, const std::string& type,
                     const std::string& speed = "31.5", const std::string& inside = "") {
    return "<object type=\"PCIDev\" pci_busid=\"" + address + "\" pci_type=\"" + type +
           " [0000:0000] 00\" pci_link_speed=\"" + speed + "\">" + inside + "</object>";
}

std::string verbs(const std::string& name, const std::string& image_guid) {
    return "<object type=\"OSDev\" osdev_type=\"3\" name=\"" + name +
           "\"><info name=\"SysImageGUID\" value=\"" + image_guid +
           "\"/><info name=\"Port1State\" value=\"4\"/><info name=\"Port1LID\" value=\"0x0\"/>"
           "<info name=\"Port1GID0\" value=\"fe80:0000:0000:0000:0000:0000:0000:0001\"/></object>";
}

TEST(HwlocKinds, LinkSpeedIsKeptInGigabits) {
    const Node node = mustReadText(
        hwloc(function("0000:01:00.0", "0200 [15b3:1015]", "7.876923", verbs("mlx5_0", "a")) +
              function("0000:02:00.0", "0200 [1d0f:efa1]", "0.000000", verbs("rdmap2s0", "b"))));
    EXPECT_NEAR(hcaNamed(node, "mlx5_0").likelyGbps(), 63.0, 0.1);
    EXPECT_EQ(hcaNamed(node, "rdmap2s0").likelyGbps(), 0);
}

TEST(HwlocKinds, VirtualFunctionsKnowTheirPhysicalOne) {
    const std::string pf0 =
        function("0000:03:00.0", "0200 [15b3:101d]", "31.5", verbs("mlx5_0", "a"));
    const std::string pf1 =
        function("0000:03:00.1", "0200 [15b3:101d]", "31.5", verbs("mlx5_1", "a"));
    const std::string vf =
        function("0000:03:08.1", "0200 [15b3:101e]", "31.5", verbs("mlx5_2", "a"));
    const std::string far_vf =
        function("0000:04:00.2", "0200 [15b3:101e]", "31.5", verbs("mlx5_3", "a"));
    Node node = mustReadText(hwloc(port("0000:00:01.0", pf0 + pf1 + vf + far_vf)));
    EXPECT_EQ(hcaNamed(node, "mlx5_0").physical_function, std::nullopt);
    EXPECT_EQ(hcaNamed(node, "mlx5_2").physical_function, PciAddress::parse("0000:03:00.1"));
    EXPECT_EQ(hcaNamed(node, "mlx5_3").physical_function, PciAddress::parse("0000:03:00.1"));
    EXPECT_TRUE(hcaNamed(node, "mlx5_1").has_vfs);
    // Another card, or none: as in a virtual machine, where it stands alone.
    node = mustReadText(hwloc(port("0000:00:01.0", pf0) + port("0000:00:02.0", vf)));
    EXPECT_EQ(hcaNamed(node, "mlx5_2").physical_function, std::nullopt);
    const std::string other =
        function("0000:03:08.1", "0200 [15b3:101e]", "31.5", verbs("mlx5_2", "b"));
    node = mustReadText(hwloc(port("0000:00:01.0", pf0 + other)));
    EXPECT_EQ(hcaNamed(node, "mlx5_2").physical_function, std::nullopt);
    EXPECT_FALSE(hcaNamed(node, "mlx5_0").has_vfs);
}

TEST(HwlocKinds, SoftwareRdmaHangsOnNothing) {
    const Node node = mustReadText(
        hwloc(function("0000:03:00.0", "0207 [15b3:1021]", "63", verbs("mlx5_0", "a")) +
              verbs("rxe0", "b")));
    EXPECT_TRUE(hcaNamed(node, "rxe0").software);
    EXPECT_FALSE(hcaNamed(node, "mlx5_0").software);
}

/// Grace: each socket has its GPU and its HCA in PCI domains of their own.
TEST(HwlocKinds, GraceHopperPairsBySocket) {
    std::string inside;
    for (int i = 0; i < 2; ++i) {
        const std::string n = std::to_string(i);
        const std::string cpus = i == 0 ? "0x0f" : "0xf0";
        inside +=
            "<object type=\"Package\" os_index=\"" + n + "\" cpuset=\"" + cpus +
            "\"><object type=\"NUMANode\" os_index=\"" + n + "\" cpuset=\"" + cpus + "\"/>" +
            // the GPU's own memory: a NUMA node without CPUs
            "<object type=\"NUMANode\" os_index=\"" + std::to_string(4 + 8 * i) +
            "\" cpuset=\"0x0\"/><object type=\"Bridge\" bridge_type=\"0-1\">" +
            port("00" + n + "9:00:00.0", function("00" + n + "9:01:00.0", "0302 [10de:2342]")) +
            "</object><object type=\"Bridge\" bridge_type=\"0-1\">" +
            port("00" + n + "5:00:00.0", function("00" + n + "5:01:00.0", "0207 [15b3:1021]", "63",
                                                  verbs("mlx5_" + n, n))) +
            "</object></object>";
    }
    const Node node =
        mustReadText("<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0xff\">" +
                     inside + "</object></topology>");
    ASSERT_EQ(node.gpus.size(), 2U);
    EXPECT_EQ(node.numa.size(), 2U);
    EXPECT_EQ(node.gpus[1].pci->str(), "0019:01:00.0");
    EXPECT_THAT(nearest(node, 0), ElementsAre("mlx5_0"));
    EXPECT_THAT(nearest(node, 1), ElementsAre("mlx5_1"));
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "NODE");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_1"), "SYS");
    EXPECT_EQ(node.gpus[1].cpus.str(), "4-7");
    EXPECT_FALSE(node.flat);
}

std::string cpu(const std::string& attributes, const std::string& inside) {
    return "<cpu " + attributes + " affinity=\"ff\">" + inside + "</cpu>";
}
std::string system(const std::string& inside) {
    return "<system version=\"1\">" + inside + "</system>";
}
const std::string kGpu = "<pci busid=\"0000:05:00.0\" class=\"0x030200\"><gpu sm=\"90\"/></pci>";
std::string nic(const std::string& address, const std::string& name) {
    return "<pci busid=\"" + address + "\" class=\"0x020700\"><nic><net name=\"" + name +
           "\" speed=\"400000\" port=\"1\" guid=\"0x1\"/></nic></pci>";
}

TEST(NcclKinds, DumpOfSeveralHostsIsTheFirstOnes) {
    const auto host = [](const std::string& hash, const std::string& hca) {
        return cpu("host_hash=\"" + hash + "\" numaid=\"0\"", kGpu + nic("0000:06:00.0", hca));
    };
    const Node node = mustReadText(system(host("0x1", "mlx5_0") + host("0x2", "mlx5_7")));
    ASSERT_EQ(node.gpus.size(), 1U);
    ASSERT_EQ(node.hcas.size(), 1U);
    EXPECT_EQ(node.hcas[0].name, "mlx5_0");
    EXPECT_TRUE(noted(node, "several hosts"));
    EXPECT_FALSE(noted(mustReadText(system(host("0x1", "mlx5_0"))), "several hosts"));
}

TEST(NcclKinds, NicOfTheCpuIsAtTheHostBridge) {
    const Node node = mustReadText(
        system(cpu("numaid=\"0\"", kGpu + "<nic><net name=\"mlx5_0\" speed=\"200000\" port=\"1\" "
                                          "guid=\"0x2\"/></nic>") +
               cpu("numaid=\"1\"", "<nic><net name=\"mlx5_1\" port=\"1\" guid=\"0x3\"/></nic>")));
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "PHB");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_1"), "SYS");
    EXPECT_EQ(hcaNamed(node, "mlx5_0").pci, std::nullopt);
}

TEST(NcclKinds, OneCpuOfNoNumaNodeStillIsOnePlace) {
    const Node node =
        mustReadText(system(cpu("numaid=\"-1\"", kGpu + nic("0000:06:00.0", "mlx5_0"))));
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "PHB");
    EXPECT_EQ(node.gpus[0].cpus.str(), "0-7");
}

TEST(NcclKinds, LibfabricsNamesAreTheDevices) {
    const Node node = mustReadText(
        system(cpu("numaid=\"0\"", kGpu + nic("0000:06:00.0", "rdmap6s0-rdm+rdmap7s0-rdm"))));
    ASSERT_EQ(node.hcas.size(), 2U);
    EXPECT_EQ(node.hcas[0].name, "rdmap6s0");
    EXPECT_EQ(node.hcas[1].name, "rdmap7s0");
}

TEST(NcclKinds, ClassOfFourDigits) {
    const Node node =
        mustReadText(system(cpu("numaid=\"0\"",
                                "<pci busid=\"0000:01:00.0\" class=\"0x0604\">"
                                "<pci busid=\"0000:02:00.0\" class=\"0x0302\"/>"
                                "<pci busid=\"0000:03:00.0\" class=\"0x0207\"/></pci>")));
    ASSERT_EQ(node.gpus.size(), 1U);
    ASSERT_EQ(node.hcas.size(), 1U);
    EXPECT_EQ(node.distance[0][0], Distance::Pix);
    EXPECT_EQ(node.hcas[0].link_layer, LinkLayer::InfiniBand);
}

}  // namespace
}  // namespace rdmatune
