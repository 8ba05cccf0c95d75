// Which HCAs are left out, with which code, and that the next rule does not hit the wrong one.
#include "tuner/binding/eligible.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/support/node_builder.hpp"

namespace rdmatune {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NodeBuilder;

Eligibility judged(const Node& node, const PlanRequest& request = {}) {
    std::vector<int> gpus;
    for (const Gpu& gpu : node.gpus) gpus.push_back(gpu.index);
    auto out = judgeHcas(node, request, gpus);
    EXPECT_TRUE(out.ok()) << out.error().message;
    return out.ok() ? *out : Eligibility{};
}

/// Codes in order, "-" for a usable HCA.
std::vector<std::string> codes(const Node& node, const PlanRequest& request = {}) {
    std::vector<std::string> out;
    for (const auto& verdict : judged(node, request).verdicts)
        out.push_back(verdict ? verdict->code : "-");
    return out;
}

using Codes = std::vector<std::string>;

TEST(Eligible, PortMustBeActive) {
    NodeBuilder builder;
    builder.hca("a").hca("b").hca("c").hca("d");
    Node node = builder.build();
    node.hcas[1].state = PortState::Down;
    node.hcas[2].state = PortState::Init;
    node.hcas[3].state = PortState::Unknown;  // a saved topology that does not tell
    EXPECT_EQ(codes(node), (Codes{"-", "port-down", "port-down", "-"}));
    EXPECT_THAT(judged(node).verdicts[2]->reason, HasSubstr("waits for the subnet manager"));
}

TEST(Eligible, SoftwareRdmaOnlyWhereThereIsNothingElse) {
    NodeBuilder builder;
    builder.roce("rxe0");
    builder.last().software = true;
    builder.roce("siw0");
    builder.last().software = true;
    EXPECT_EQ(codes(builder.build()), (Codes{"-", "-"}));
    builder.roce("mlx5_0");
    EXPECT_EQ(codes(builder.build()), (Codes{"software", "software", "-"}));
    PlanRequest request;
    request.hca_include = {"rxe0", "mlx5_0"};
    EXPECT_EQ(codes(builder.build(), request), (Codes{"-", "site", "-"}));
    builder.last().state = PortState::Down;
    EXPECT_EQ(codes(builder.build()), (Codes{"-", "-", "port-down"}));
}

TEST(Eligible, WithoutRatesThePcieLinkTellsTheClass) {
    NodeBuilder builder;
    builder.roce("mlx5_0").roce("mlx5_1");
    Node node = builder.build();
    for (Hca& hca : node.hcas) hca.rate_gbps = 0;
    node.hcas[0].link = {8, 8, 0, 0};  // a 25 Gbit/s card's
    node.hcas[1].pcie_gbps = 504;
    EXPECT_EQ(codes(node), (Codes{"slow", "-"}));
    EXPECT_THAT(judged(node).verdicts[0]->reason,
                HasSubstr("Its PCIe link is good for 63.0154 Gbit/s, the others at 504 Gbit/s"));
    node.hcas[1].pcie_gbps = 126;  // the same card in a longer slot
    EXPECT_EQ(codes(node), (Codes{"-", "-"}));
    node.hcas[1].pcie_gbps = 0;  // a virtual machine's link tells nothing
    EXPECT_EQ(codes(node), (Codes{"-", "-"}));
    // A known rate counts, whatever the slot could carry.
    node.hcas[0].rate_gbps = node.hcas[1].rate_gbps = 25;
    node.hcas[1].pcie_gbps = 504;
    EXPECT_EQ(codes(node), (Codes{"-", "-"}));
}

TEST(Eligible, WithoutRatesTheFabricOfTheWiderLinksWins) {
    NodeBuilder builder;
    builder.gpus(1).roce("mlx5_0").hca("mlx5_1").near(0, 0, Distance::Pix);
    Node node = builder.build();
    for (Hca& hca : node.hcas) hca.rate_gbps = 0;
    node.hcas[0].pcie_gbps = 62.4;
    node.hcas[1].pcie_gbps = 504;
    EXPECT_EQ(codes(node), (Codes{"other-link-layer", "-"}));
    EXPECT_THAT(judged(node).verdicts[0]->reason,
                HasSubstr("mlx5_1 have PCIe links for 504 Gbit/s together against 62.4 Gbit/s"));
}

TEST(Eligible, ErrnoOfOpeningIsNamed) {
    NodeBuilder builder;
    builder.hca("a").hca("b");
    builder.last().open_errno = EPERM;
    EXPECT_EQ(codes(builder.build()), (Codes{"-", "cannot-open"}));
    EXPECT_THAT(judged(builder.build()).verdicts[1]->reason,
                HasSubstr("Operation not permitted): a device cgroup"));
}

TEST(Eligible, SitesNamesAreExact) {
    NodeBuilder builder;
    builder.hca("mlx5_1").hca("mlx5_1", 2).hca("mlx5_11");
    const Node node = builder.build();
    PlanRequest request;
    request.hca_include = {"mlx5_1"};
    EXPECT_EQ(codes(node, request), (Codes{"-", "-", "site"}));
    request.hca_include = {"mlx5_1:2"};
    EXPECT_EQ(codes(node, request), (Codes{"site", "-", "site"}));
    request.hca_include = {"80:00.0", "0000:81:00.0:1"};
    EXPECT_EQ(codes(node, request), (Codes{"-", "-", "-"}));
    request.hca_include = {"0000:80:00.0:2"};
    EXPECT_EQ(codes(node, request), (Codes{"site", "-", "site"}));
    request.hca_include.clear();
    request.hca_exclude = {"mlx5_1:1", "mlx5_7"};
    EXPECT_EQ(codes(node, request), (Codes{"site", "-", "-"}));
    EXPECT_THAT(judged(node, request).notes,
                Contains("hca_exclude names mlx5_7, which is no HCA of this node."));
}

TEST(Eligible, IncludeThatLeavesNothingIsAnError) {
    const Node node = NodeBuilder().hca("mlx5_0").build();
    PlanRequest request;
    request.hca_include = {"ib0"};
    const auto result = judgeHcas(node, request, {});
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message,
                HasSubstr("hca_include = ib0 leaves no HCA, which has mlx5_0"));
    // A node without any HCA is not the include's fault.
    EXPECT_TRUE(judgeHcas(Node{}, request, {}).ok());
}

TEST(Eligible, CommonSubnets) {
    NodeBuilder builder;
    builder.roce("a", 1).roce("b", 2).roce("oob", 9);
    PlanRequest request;
    request.common_subnets = {"10.1.0.0/24", "10.2.0.0/24"};
    EXPECT_EQ(codes(builder.build(), request), (Codes{"-", "-", "other-subnet"}));
    // Subnets that fit nothing here are more likely a wrong guess than a node without network.
    request.common_subnets = {"192.168.0.0/24"};
    EXPECT_EQ(codes(builder.build(), request), (Codes{"-", "-", "-"}));
    EXPECT_THAT(judged(builder.build(), request).notes, Contains(HasSubstr("all are kept")));
    request.common_subnets.clear();
    request.agreed = Agreement::parse("rt-agreed/1 rails=1 layer=RoCE subnets=10.2.0.0/24");
    EXPECT_EQ(codes(builder.build(), request), (Codes{"other-subnet", "-", "other-subnet"}));
}

TEST(Eligible, LinkLayerByRateThenNearnessThenInfiniBand) {
    NodeBuilder builder;
    builder.gpus(1).hca("ib").roce("eth").others(Distance::Node);
    Node node = builder.build();
    EXPECT_EQ(codes(node), (Codes{"-", "other-link-layer"}));
    node.distance[0][1] = Distance::Pix;
    EXPECT_EQ(codes(node), (Codes{"other-link-layer", "-"}));
    EXPECT_THAT(judged(node).verdicts[0]->reason, HasSubstr("eth are nearer to the GPUs"));
    node.hcas[1].rate_gbps = 100;  // a storage port in the GPU's switch
    EXPECT_EQ(codes(node), (Codes{"-", "other-link-layer"}));
    EXPECT_THAT(judged(node).verdicts[1]->reason,
                HasSubstr("ib carry 400 Gbit/s together against 100 Gbit/s"));
    PlanRequest request;
    request.agreed = Agreement::parse("rt-agreed/1 rails=1 layer=RoCE");
    EXPECT_EQ(codes(node, request), (Codes{"other-link-layer", "-"}));
}

TEST(Eligible, SlowIsWhatWouldHoldTheOthersBack) {
    const auto with = [](std::vector<double> rates) {
        NodeBuilder builder;
        for (std::size_t i = 0; i < rates.size(); ++i) {
            builder.hca("h" + std::to_string(i));
            builder.last().rate_gbps = rates[i];
        }
        return builder.build();
    };
    EXPECT_EQ(codes(with({400, 100})), (Codes{"-", "slow"}));
    EXPECT_EQ(codes(with({400, 200})),
              (Codes{"-", "-"}));  // two at 200 carry as much as one at 400
    EXPECT_EQ(codes(with({400, 199})), (Codes{"-", "slow"}));
    EXPECT_EQ(codes(with({100, 100, 100, 100, 100, 400})), (Codes{"-", "-", "-", "-", "-", "-"}));
    EXPECT_EQ(codes(with({200, 200, 200, 200, 25})), (Codes{"-", "-", "-", "-", "slow"}));
    EXPECT_EQ(codes(with({0, 0, 400})), (Codes{"-", "-", "-"}));  // 0: not known
}

TEST(Eligible, NearerIsKeptUnlessMuchSlower) {
    NodeBuilder builder;
    builder.gpus(1).hca("near").hca("far0").hca("far1").near(0, 0, Distance::Pix);
    Node node = builder.build();
    node.hcas[0].rate_gbps = 200;
    EXPECT_EQ(codes(node), (Codes{"-", "-", "-"}));
    node.hcas[0].rate_gbps = 100;  // a management port that happens to be in the GPU's switch
    EXPECT_EQ(codes(node), (Codes{"slow", "-", "-"}));
    node.hcas[0].rate_gbps = 200;
    node.distance[0] = {Distance::Pix, Distance::Pix, Distance::Pix};
    EXPECT_EQ(codes(node), (Codes{"slow", "-", "-"})) << "three at 200 carry less than two at 400";
}

TEST(Eligible, SitesIncludeOverrulesJudgementButNotFacts) {
    NodeBuilder builder;
    builder.hca("a").hca("slow");
    builder.last().rate_gbps = 25;
    builder.hca("down");
    builder.last().state = PortState::Down;
    PlanRequest request;
    request.hca_include = {"a", "slow", "down"};
    EXPECT_EQ(codes(builder.build(), request), (Codes{"-", "-", "port-down"}));
}

TEST(Eligible, BondIsUsedOnce) {
    NodeBuilder builder;
    builder.roce("mlx5_bond_0");
    builder.last().is_bond = true;
    builder.last().netdev = "bond0";
    builder.roce("mlx5_2");
    builder.last().bond_master = "bond0";
    builder.roce("mlx5_3");
    builder.last().bond_master = "bond1";  // its bond has no RDMA device: the port is all there is
    Node node = builder.build();
    EXPECT_EQ(codes(node), (Codes{"-", "bonded", "-"}));
    node.hcas[0].state = PortState::Down;
    EXPECT_EQ(codes(node), (Codes{"port-down", "-", "-"}));
}

TEST(Eligible, DualPortAndTwoFunctionsOfOneAsicAreFourHcas) {
    NodeBuilder builder;
    builder.hca("mlx5_0").hca("mlx5_0", 2).hca("mlx5_1").hca("mlx5_2");
    for (int i = 0; i < 4; ++i) builder.last().sys_image_guid = "0002:c903:00aa:bb00";
    Node node = builder.build();
    node.hcas[2].node_guid = node.hcas[3].node_guid = "0002:c903:00aa:bb00";
    EXPECT_EQ(codes(node), (Codes{"-", "-", "-", "-"}));
}

}  // namespace
}  // namespace rdmatune
