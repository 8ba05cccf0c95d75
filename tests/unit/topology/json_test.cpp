#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/topology/cases.hpp"
#include "tests/unit/topology/sys_tree.hpp"

namespace rdmatune {
namespace {

/// A Node in which every field has another value than its default.
Node fullNode() {
    Node node;
    node.hostname = "gpu01";
    node.source = TopologySource::NcclXml;
    Gpu gpu;
    gpu.pci = PciAddress{0x10000, 0xff, 0x1f, 7};
    gpu.uuid = "GPU-1";
    gpu.minor = 0;
    gpu.vendor = "nvidia";
    gpu.model = "H100 \"quoted\" \\ model";
    gpu.numa = 1;
    gpu.package = 0;
    gpu.cpus = *CpuSet::parse("0-3,8");
    gpu.pci_path = {PciAddress{0, 1, 2, 3}, PciAddress{0xffff, 0xff, 1, 0}};
    gpu.link = {32, 16, 64, 16};
    gpu.mig = {"MIG-GPU-1/1/0", "MIG-GPU-1/2/0"};
    Gpu bare;
    bare.index = 1;
    node.gpus = {gpu, bare};
    Hca hca;
    hca.name = "mlx5_0";
    hca.port = 2;
    hca.pci = PciAddress{0, 5, 0, 1};
    hca.link_layer = LinkLayer::Ethernet;
    hca.state = PortState::Armed;
    hca.rate_gbps = 2.5;
    hca.lid = 7;
    hca.sm_lid = 1;
    hca.gids = {{3, "fe80::1", GidType::RoceV2, "eth0"}, {4, "x", GidType::RoceV1, ""}};
    hca.gids_known = true;
    hca.netdev = "eth0";
    hca.node_guid = "1:2:3:4";
    hca.sys_image_guid = "1:2:3:0";
    hca.numa = 0;
    hca.package = 3;
    hca.pci_path = {PciAddress{0, 4, 0, 0}};
    hca.link = {2.5, 1, 0.1, 0};
    hca.pcie_gbps = 504;
    hca.software = true;
    hca.physical_function = PciAddress{0, 5, 0, 0};
    hca.has_vfs = true;
    hca.bond_master = "bond0";
    hca.is_bond = true;
    hca.open_errno = EPERM;
    node.hcas = {hca};
    node.bridges = {{PciAddress{0, 4, 0, 0}, "1000:c030", {8, 4, 16, 8}}};
    node.numa = {{8, 1, *CpuSet::parse("0-3")}};
    node.cpus = *CpuSet::parse("0-15");
    node.distance = {{Distance::Pxb}, {Distance::Unknown}};
    node.flat = true;
    node.notes = {"one", "two"};
    return node;
}

void expectRoundTrip(const Node& node, const std::string& what) {
    for (const int indent : {-1, 2}) {
        const Result<Node> back = nodeFromJson(nodeToJson(node, indent), what);
        ASSERT_TRUE(back.ok()) << back.error().message;
        EXPECT_TRUE(*back == node) << what << '\n' << nodeToJson(*back, 2);
    }
}

TEST(NodeJson, EveryFieldGoesBothWays) {
    expectRoundTrip(fullNode(), "full");
    expectRoundTrip(Node{}, "empty");
}

TEST(NodeJson, EveryEnumValueGoesBothWays) {
    Node node = fullNode();
    for (const LinkLayer layer : {LinkLayer::Unknown, LinkLayer::InfiniBand, LinkLayer::Ethernet})
        for (const PortState state : {PortState::Unknown, PortState::Down, PortState::Init,
                                      PortState::Armed, PortState::Active})
            for (const TopologySource source :
                 {TopologySource::Live, TopologySource::HwlocXml, TopologySource::NcclXml,
                  TopologySource::TopoMatrix, TopologySource::Json})
                for (const GidType type : {GidType::InfiniBand, GidType::RoceV1, GidType::RoceV2}) {
                    node.hcas[0].link_layer = layer;
                    node.hcas[0].state = state;
                    node.source = source;
                    node.hcas[0].gids[0].type = type;
                    expectRoundTrip(node, "enums");
                }
}

TEST(NodeJson, EverySavedMachineGoesBothWays) {
    for (const auto& file : testing::filesIn(testing::fixtures()))
        expectRoundTrip(testing::mustRead(file), file.string());
    if (testing::cases().empty()) return;
    for (const char* folder : {"hwloc", "nccl-xml", "topo-m"})
        for (const auto& file : testing::filesIn(testing::cases() / folder))
            expectRoundTrip(testing::mustRead(file), file.string());
}

TEST(NodeJson, ThisMachineGoesBothWays) {
    const Result<Node> node = readThisMachine();
    ASSERT_TRUE(node.ok());
    expectRoundTrip(*node, "this machine");
}

TEST(NodeJson, IsOneLineUnlessIndented) {
    EXPECT_EQ(nodeToJson(fullNode()).find('\n'), std::string::npos);
    EXPECT_NE(nodeToJson(fullNode(), 2).find('\n'), std::string::npos);
}

TEST(NodeJson, IsFoundByLooking) {
    const Result<Node> node = readTopologyText('\n' + nodeToJson(fullNode(), 2), "saved.json");
    ASSERT_TRUE(node.ok()) << node.error().message;
    EXPECT_TRUE(*node == fullNode());
}

TEST(NodeJson, TextThatIsNoUtf8DoesNotThrow) {
    Node node = fullNode();
    node.gpus[0].model = "\xff\xfe";
    const Result<Node> back = nodeFromJson(nodeToJson(node), "x");
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(back->hcas, node.hcas);
}

/// The message for a full node's JSON in which one text was replaced.
std::string errorAfter(const std::string& from, const std::string& to) {
    std::string json = nodeToJson(fullNode());
    const auto at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    json.replace(at, from.size(), to);
    const Result<Node> node = nodeFromJson(json, "n.json");
    return node.ok() ? "read" : node.error().message;
}

TEST(NodeJson, ErrorsNameTheFieldAndWhatWasExpected) {
    EXPECT_EQ(errorAfter("\"port\":2", "\"port\":\"two\""),
              "n.json: node.hcas[0].port: expected a whole number");
    EXPECT_EQ(errorAfter("\"ARMED\"", "\"SHAKY\""),
              "n.json: node.hcas[0].state: expected one of the known words, not \"SHAKY\"");
    EXPECT_EQ(errorAfter("\"0000:05:00.1\"", "\"slot 5\""),
              "n.json: node.hcas[0].pci: expected a PCI address such as \"0000:03:00.0\"");
    EXPECT_EQ(errorAfter("\"PXB\"", "\"FAR\""),
              "n.json: node.distance[0]: expected PIX, PXB, PHB, NODE, SYS or ?");
    EXPECT_EQ(errorAfter("[\"PXB\"]", "[]"),
              "n.json: node.distance[0]: expected one word for each of the 1 HCAs");
    EXPECT_EQ(errorAfter("[\"PXB\"],", ""),
              "n.json: node.distance: expected one row for each of the 2 GPUs");
    EXPECT_EQ(errorAfter("\"index\":1", "\"index\":5"),
              "n.json: node.gpus[1].index: expected the GPU's place in the list");
    EXPECT_EQ(errorAfter("\"rdma_tune_node\":1", "\"rdma_tune_node\":2"),
              "n.json: node.rdma_tune_node: expected 1");
    EXPECT_EQ(errorAfter("\"0-3,8\"", "\"0-3,x\""),
              "n.json: node.gpus[0].cpus: expected a CPU list such as \"0-11,24\"");
    EXPECT_EQ(errorAfter("\"name\":\"mlx5_0\"", "\"name\":\"\""),
              "n.json: node.hcas[0].name: expected the device's name");
    EXPECT_EQ(errorAfter("\"rate_gbps\":2.5", "\"rate_gbps\":-1"),
              "n.json: node.hcas[0].rate_gbps: expected a number that is not negative");
    EXPECT_EQ(errorAfter("\"gids\":[{", "\"gids\":[7,{"),
              "n.json: node.hcas[0].gids[0]: expected an object");
}

TEST(NodeJson, SyntaxErrorsAreReported) {
    const Result<Node> node = nodeFromJson("{\"gpus\": [", "n.json");
    ASSERT_FALSE(node.ok());
    EXPECT_EQ(node.error().message.find("n.json: not the JSON of a node:"), 0U);
}

TEST(NodeJson, UnknownKeysAreLeftAlone) {
    EXPECT_EQ(errorAfter("\"flat\":true", "\"flat\":true,\"colour\":\"blue\""), "read");
}

}  // namespace
}  // namespace rdmatune
