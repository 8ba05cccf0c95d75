// What went wrong in public threads, as small nodes: each test names the thread and the outcome
// that would have spared its author.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/support/node_builder.hpp"
#include "tuner/binding/gid.hpp"
#include "tuner/binding/hca_spec.hpp"
#include "tuner/binding/plan.hpp"

namespace rdmatune {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NodeBuilder;
using ::testing::Not;

Plan planned(const Node& node, int tasks, const PlanRequest& base = {}) {
    PlanRequest request = base;
    request.local_tasks = tasks;
    auto plan = makePlan(node, request);
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    return plan.ok() ? *plan : Plan{};
}

std::string ibHca(const Plan& plan) {
    for (const auto& [name, value] : plan.env)
        if (name == "NCCL_IB_HCA") return value;
    return {};
}

std::vector<std::string> codes(const Plan& plan) {
    std::vector<std::string> out;
    for (const auto& excluded : plan.excluded) out.push_back(excluded.hca + " " + excluded.code);
    return out;
}

Node twelveHcas() {
    NodeBuilder builder;
    builder.gpus(1);
    for (int i = 0; i < 12; ++i) builder.hca("mlx5_" + std::to_string(i));
    builder.near(0, 1, Distance::Pix);
    return builder.build();
}

// NVIDIA/nccl PR #236: NCCL_IB_HCA=mlx5_1 also takes mlx5_10 and mlx5_11.
TEST(Threads, S01_HcaNameIsAPrefix) {
    const Node node = twelveHcas();
    EXPECT_EQ(ibHca(planned(node, 1)), "=mlx5_1:1");
    EXPECT_THAT(HcaSpec::parse("mlx5_1:1").select(node), ElementsAre(1, 10, 11));
    EXPECT_THAT(HcaSpec::parse("=mlx5_1:1").select(node), ElementsAre(1));
    EXPECT_THAT(HcaSpec::parse("mlx5_1:1").lint(node),
                ElementsAre("NCCL_IB_HCA: mlx5_1 without \"=\" also takes mlx5_10, mlx5_11, whose "
                            "name begins alike; write =mlx5_1:1."));
    EXPECT_THAT(HcaSpec::parse("=mlx5_1:1").lint(node), IsEmpty());
    EXPECT_THAT(HcaSpec::parse("mlx5").lint(node), IsEmpty()) << "a family's name is meant so";
}

// DeepSeek-v4-Flash-DSpark-2x-DGX-Spark PR #95: the whole grammar of NCCL_IB_HCA.
TEST(Threads, S03_GrammarOfNcclIbHca) {
    NodeBuilder builder;
    builder.hca("dev0").hca("dev1").hca("dev1", 2).hca("other");
    const Node node = builder.build();
    EXPECT_THAT(HcaSpec::parse("").select(node), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(HcaSpec::parse("=dev0,dev1").select(node), ElementsAre(0, 1, 2));
    EXPECT_THAT(HcaSpec::parse("==dev0,dev1").select(node), ElementsAre(0, 1, 2));
    EXPECT_THAT(HcaSpec::parse("==dev0,dev1").lint(node),
                Contains(HasSubstr("one = at the start")));
    EXPECT_THAT(HcaSpec::parse("^=dev1").select(node), ElementsAre(0, 3));
    EXPECT_THAT(HcaSpec::parse("^dev").select(node), ElementsAre(3));
    EXPECT_THAT(HcaSpec::parse("=dev1:2").select(node), ElementsAre(2));
    const auto full = HcaSpec::parse("=dev1:2:7:1,dev0");
    ASSERT_EQ(full.entries.size(), 2U);
    EXPECT_EQ(full.entries[0], (HcaSpec::Entry{"dev1", 2, 7, 1}));
    EXPECT_THAT(full.select(node), ElementsAre(0, 2));
    EXPECT_THAT(full.problems, IsEmpty());
    EXPECT_THAT(HcaSpec::parse("dev1:x").problems, Contains(HasSubstr("NAME:PORT:RAIL:PLANE")));
    // nccl-tests #150: the modifier in front of every name.
    EXPECT_THAT(HcaSpec::parse("=dev0,=dev1").lint(node),
                Contains(HasSubstr("=dev1 matches no HCA")));
    EXPECT_THAT(HcaSpec::parse("^=dev,other,dev0,dev1").lint(node),
                Contains(HasSubstr("leaves no HCA")));
}

// NVIDIA/nccl #1412 and ROCm/rccl PR #361: devices of another link layer in the data path.
TEST(Threads, S05_S07_OtherLinkLayer) {
    NodeBuilder builder;
    builder.gpus(1).hca("mlx5_0").hca("mlx5_1").hca("mlx5_2").roce("mlx5_3").roce("mlx5_4");
    builder.others(Distance::Node);
    const Plan plan = planned(builder.build(), 1);
    EXPECT_EQ(ibHca(plan), "=mlx5_0:1,mlx5_1:1,mlx5_2:1");
    EXPECT_THAT(codes(plan), ElementsAre("mlx5_3 other-link-layer", "mlx5_4 other-link-layer"));
    EXPECT_THAT(plan.excluded[0].reason,
                HasSubstr("link layer is Ethernet, the compute fabric's is InfiniBand"));
}

// getainode/ainode PR #89: ports with a 169.254 address or on another subnet.
TEST(Threads, S09_OneOfFourPortsIsOnTheFabric) {
    NodeBuilder builder;
    builder.gpus(1).others(Distance::Node);
    builder.roce("rocep1s0f0", 1)
        .roce("rocep1s0f1", 2)
        .roce("roceP2p1s0f0", 3)
        .roce("roceP2p1s0f1", 4);
    Node node = builder.build();
    node.hcas[1].gids = {{0, "fe80:0000:0000:0000:0202:c9ff:fe00:0001", GidType::RoceV1, ""},
                         {3, "0000:0000:0000:0000:0000:ffff:a9fe:0102", GidType::RoceV2, ""}};
    PlanRequest request;
    request.common_subnets = {"10.1.0.0/24"};
    const Plan plan = planned(node, 1, request);
    EXPECT_EQ(ibHca(plan), "=rocep1s0f0:1");
    EXPECT_THAT(codes(plan), ElementsAre("rocep1s0f1 link-local", "roceP2p1s0f0 other-subnet",
                                         "roceP2p1s0f1 other-subnet"));
}

// NVIDIA/nccl #2097: two PCI functions of one ASIC, equal guid, both "port 1".
TEST(Threads, S11_IdentityIsFunctionAndPort) {
    NodeBuilder builder;
    builder.gpus(2).hca("mlx5_0").hca("mlx5_1").others(Distance::Pix);
    Node node = builder.build();
    node.hcas[1].pci = PciAddress{0, node.hcas[0].pci->bus, 0, 1};
    node.hcas[0].node_guid = node.hcas[1].node_guid = "0002:c903:00aa:bb00";
    const Plan plan = planned(node, 2);
    EXPECT_EQ(ibHca(plan), "=mlx5_0:1,mlx5_1:1");
    EXPECT_THAT(plan.ranks[1].hcas, ElementsAre(1));
    PlanRequest request;
    request.hca_exclude = {node.hcas[1].pci->str()};
    EXPECT_EQ(ibHca(planned(node, 2, request)), "=mlx5_0:1");
}

// NVIDIA/nccl #2428: one process may not open its second HCA, and errno reads ENOENT.
TEST(Threads, S13_HcaThatCannotBeOpened) {
    NodeBuilder builder;
    builder.gpus(1).hca("erdma_0").hca("erdma_1").others(Distance::Phb);
    Node node = builder.build();
    node.hcas[1].open_errno = ENOENT;
    const Plan here = planned(node, 1);
    EXPECT_EQ(ibHca(here), "=erdma_0:1");
    EXPECT_EQ(here.excluded[0].code, "cannot-open");
    EXPECT_THAT(here.excluded[0].reason, HasSubstr("No such file or directory): a device cgroup"));
    // The other node can open both, and uses what all have.
    node.hcas[1].open_errno = 0;
    PlanRequest request;
    request.agreed = Agreement::parse("rt-agreed/1 rails=1 layer=IB");
    const Plan there = planned(node, 1, request);
    EXPECT_EQ(there.hcas.size(), 1U);
    EXPECT_THAT(codes(there), ElementsAre("erdma_1 no-counterpart"));
}

// NVIDIA/nccl #1422: a PF and its VFs, both visible.
TEST(Threads, S15_PfOrVfNeverBoth) {
    NodeBuilder builder;
    builder.gpus(1).hca("mlx5_0").hca("mlx5_1").hca("mlx5_2").others(Distance::Pix);
    Node node = builder.build();
    node.hcas[0].has_vfs = true;
    node.hcas[1].physical_function = node.hcas[2].physical_function = node.hcas[0].pci;
    EXPECT_EQ(ibHca(planned(node, 1)), "=mlx5_0:1");
    EXPECT_THAT(codes(planned(node, 1)), ElementsAre("mlx5_1 vf-beside-pf", "mlx5_2 vf-beside-pf"));
    node.hcas[0].open_errno = EACCES;  // in a container that was given the VFs
    EXPECT_EQ(ibHca(planned(node, 1)), "=mlx5_1:1,mlx5_2:1");
}

// NVIDIA/nccl #925: many VFs in sysfs, only some with a GID in this network namespace.
TEST(Threads, S17_NoGidNoUse) {
    NodeBuilder builder;
    builder.gpus(1).roce("mlx5_2").roce("mlx5_3").roce("mlx5_4").others(Distance::Pix);
    Node node = builder.build();
    node.hcas[0].gids.clear();
    node.hcas[2].gids.clear();
    EXPECT_EQ(ibHca(planned(node, 1)), "=mlx5_3:1");
    EXPECT_THAT(codes(planned(node, 1)), ElementsAre("mlx5_2 no-gid", "mlx5_4 no-gid"));
    for (Hca& hca : node.hcas) hca.gids_known = false;  // a saved topology does not tell
    EXPECT_EQ(planned(node, 1).hcas.size(), 3U);
}

// NVIDIA/nccl #1015, nccl-tests #265: one queue pair over a bond uses one port.
TEST(Threads, S19_BondNeedsTwoQueuePairs) {
    NodeBuilder builder;
    builder.gpus(1).roce("mlx5_bond_0").others(Distance::Pxb);
    builder.last().is_bond = true;
    builder.last().rate_gbps = 200;
    builder.roce("mlx5_4");
    const Plan plan = planned(builder.build(), 1);
    EXPECT_THAT(codes(plan), IsEmpty()) << "the bond's rate is one port's, not a reason to drop it";
    EXPECT_THAT(plan.notes, Contains(HasSubstr("Set NCCL_IB_QPS_PER_CONNECTION=2")));
    for (const auto& [name, value] : plan.env) EXPECT_NE(name, "NCCL_IB_QPS_PER_CONNECTION");
}

// NVIDIA/nccl #769: index 1 is link-local and times out, 3 works.
TEST(Threads, S21_RoutableRoceV2Gid) {
    Node node = NodeBuilder().roce("mlx5_0").build();
    EXPECT_EQ(bestGidIndex(node.hcas[0]), 3);
    node.hcas[0].gids.pop_back();  // v1 alone is routable: v2 still wins, it is what peers speak
    EXPECT_EQ(bestGidIndex(node.hcas[0]), 1);
    EXPECT_EQ(bestGidIndex(Hca{}), std::nullopt);
}

// uccl PR #803: IPv6 only, the first GID is link-local.
TEST(Threads, S23_GlobalIpv6BeforeLinkLocal) {
    Hca hca;
    hca.link_layer = LinkLayer::Ethernet;
    hca.gids = {{0, "fe80:0000:0000:0000:0202:c9ff:fe00:0001", GidType::RoceV1, ""},
                {1, "fe80:0000:0000:0000:0202:c9ff:fe00:0001", GidType::RoceV2, ""},
                {2, "fd93:16d3:59b6:012e:7ec2:55ff:febd:d78e", GidType::RoceV1, ""},
                {3, "fd93:16d3:59b6:012e:7ec2:55ff:febd:d78e", GidType::RoceV2, ""}};
    EXPECT_EQ(bestGidIndex(hca), 3);
}

// NVIDIA/nccl-tests #380: in a virtual machine the order of the NICs is reversed.
TEST(Threads, S31_PairedByPlaceNotByNumber) {
    NodeBuilder builder;
    builder.gpus(4).others(Distance::Sys);
    for (int i = 0; i < 4; ++i) builder.hca("mlx5_" + std::to_string(i));
    for (int i = 0; i < 4; ++i) builder.near(i, 3 - i, Distance::Pix);
    const Plan plan = planned(builder.build(), 4);
    for (int i = 0; i < 4; ++i) EXPECT_THAT(plan.ranks[i].hcas, ElementsAre(3 - i));
}

// nccl #2345: two rails that do not reach each other.
TEST(Threads, RailsWithoutRouteBetweenThem) {
    NodeBuilder builder;
    builder.gpus(4).roce("rocep80s0", 1).roce("rocep203s0", 2).roce("rocep167s0f0", 9);
    for (int g = 0; g < 4; ++g) builder.near(g, g / 2, Distance::Pix).near(g, 2, Distance::Node);
    PlanRequest request;
    request.agreed = Agreement::parse(
        "rt-agreed/1 rails=2 layer=RoCE subnets=10.1.0.0/24,10.2.0.0/24 order=subnet cross=no");
    const Plan plan = planned(builder.build(), 4, request);
    EXPECT_EQ(ibHca(plan), "=rocep80s0:1,rocep203s0:1");
    EXPECT_THAT(plan.env, Contains(std::pair<std::string, std::string>("NCCL_CROSS_NIC", "0")));
}

}  // namespace
}  // namespace rdmatune
