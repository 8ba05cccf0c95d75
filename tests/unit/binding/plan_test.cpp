#include "tuner/binding/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/support/node_builder.hpp"

namespace rdmatune {
namespace {

using ::testing::Contains;
using testing::dgxLike;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NodeBuilder;

Plan planned(const Node& node, PlanRequest request) {
    auto plan = makePlan(node, request);
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    return plan.ok() ? *plan : Plan{};
}

PlanRequest tasks(int n) {
    PlanRequest out;
    out.local_tasks = n;
    return out;
}

std::string envOf(const Plan& plan, const std::string& name) {
    for (const auto& [key, value] : plan.env)
        if (key == name) return value;
    return "(unset)";
}

std::string codeOf(const Plan& plan, const std::string& hca) {
    for (const auto& excluded : plan.excluded)
        if (excluded.hca == hca) return excluded.code;
    return "(used)";
}

TEST(Plan, OneTaskPerGpu) {
    const Node node = dgxLike();
    const Plan plan = planned(node, tasks(8));
    ASSERT_EQ(plan.ranks.size(), 8U);
    for (int r = 0; r < 8; ++r) {
        EXPECT_THAT(plan.ranks[r].gpus, ElementsAre(r));
        EXPECT_THAT(plan.ranks[r].hcas, ElementsAre(r));
        EXPECT_EQ(plan.ranks[r].distance, Distance::Pix);
    }
    EXPECT_EQ(plan.ranks[1].cpus.str(), "4-7,36-39");
    EXPECT_EQ(plan.ranks[1].reason, "GPU 1 and mlx5_1 share one PCIe switch (PIX); CPUs near it.");
    EXPECT_EQ(envOf(plan, "NCCL_IB_HCA"),
              "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1");
    EXPECT_THAT(plan.excluded, IsEmpty());
    EXPECT_THAT(plan.notes, IsEmpty());
}

TEST(Plan, FewerTasksGetNeighbouringGpus) {
    const Plan two = planned(dgxLike(), tasks(2));
    EXPECT_THAT(two.ranks[0].gpus, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(two.ranks[1].gpus, ElementsAre(4, 5, 6, 7));
    EXPECT_THAT(two.ranks[1].hcas, ElementsAre(4, 5, 6, 7));
    const Plan three = planned(dgxLike(), tasks(3));
    EXPECT_THAT(three.ranks[0].gpus, ElementsAre(0, 1, 2));
    EXPECT_THAT(three.ranks[1].gpus, ElementsAre(3, 4, 5));
    EXPECT_THAT(three.ranks[2].gpus, ElementsAre(6, 7));
}

TEST(Plan, MoreTasksThanGpusShareEvenlyAndAreTold) {
    PlanRequest request = tasks(5);
    request.gpus = {{0, 1}};
    const Plan plan = planned(dgxLike(), request);
    EXPECT_THAT(plan.ranks[2].gpus, ElementsAre(0));
    EXPECT_THAT(plan.ranks[3].gpus, ElementsAre(1));
    EXPECT_THAT(plan.notes,
                Contains(HasSubstr("5 tasks share 2 GPUs, some GPUs with one task more")));
    EXPECT_THAT(plan.ranks[0].reason, HasSubstr("the GPU is shared with ranks 1-2"));
}

TEST(Plan, StepWithTwoGpusUsesTheirHcasOnly) {
    PlanRequest request = tasks(2);
    request.gpus = {{5, 2, 5}};  // in any order, repeated
    const Plan plan = planned(dgxLike(), request);
    EXPECT_THAT(plan.hcas, ElementsAre(2, 5));
    EXPECT_EQ(envOf(plan, "NCCL_IB_HCA"), "=mlx5_2:1,mlx5_5:1");
    EXPECT_EQ(codeOf(plan, "mlx5_0"), "other-gpus");
    EXPECT_THAT(plan.excluded[0].reason, HasSubstr("nearest to GPU 0 (PIX)"));
}

TEST(Plan, GpuGetsBothHcasOfItsSwitch) {
    NodeBuilder builder;
    builder.gpus(2).hca("a").hca("b").hca("c").hca("d");
    for (int i = 0; i < 2; ++i) builder.near(0, i, Distance::Pix).near(1, i + 2, Distance::Pix);
    const Plan plan = planned(builder.build(), tasks(2));
    EXPECT_THAT(plan.pairs[0].hcas, ElementsAre(0, 1));
    EXPECT_THAT(plan.pairs[1].hcas, ElementsAre(2, 3));
}

TEST(Plan, StorageHcasFarFromAllGpusAreLeftOut) {
    // As in a DGX A100: eight HCAs by the switches, the others across sockets from everything.
    NodeBuilder builder;
    builder.gpus(2).hca("mlx5_0").hca("mlx5_1").hca("mlx5_8");
    builder.near(0, 0, Distance::Pxb).near(1, 1, Distance::Pxb);
    const Plan plan = planned(builder.build(), tasks(2));
    EXPECT_EQ(codeOf(plan, "mlx5_8"), "far");
    EXPECT_EQ(envOf(plan, "NCCL_IB_HCA"), "=mlx5_0:1,mlx5_1:1");
}

TEST(Plan, SingleHcaAcrossSocketsIsUsedAndTold) {
    const Plan plan = planned(NodeBuilder().gpus(4).hca("rocep49s0").build(), tasks(4));
    EXPECT_EQ(plan.ranks[3].distance, Distance::Sys);
    EXPECT_EQ(envOf(plan, "NCCL_IB_HCA"), "=rocep49s0:1");
    EXPECT_THAT(plan.notes,
                Contains("No usable HCA is on the socket of GPUs 0-3: rocep49s0 is across sockets "
                         "(SYS), where GPUDirect RDMA does not pay."));
    EXPECT_THAT(plan.notes, Contains("4 GPUs share 1 HCA."));
}

TEST(Plan, NearerButExcludedIsTold) {
    NodeBuilder builder;
    builder.gpus(1).hca("mlx5_0");
    builder.last().state = PortState::Down;
    builder.hca("mlx5_1").near(0, 0, Distance::Pix).near(0, 1, Distance::Node);
    const Plan plan = planned(builder.build(), tasks(1));
    EXPECT_THAT(plan.notes, Contains("GPU 0 gets mlx5_1 (NODE). mlx5_0 would be nearer but is left "
                                     "out (port-down)."));
}

TEST(Plan, OtherGpusHcaIsOfTheNearestOne) {
    NodeBuilder builder;
    builder.gpus(3).hca("mlx5_0").hca("mlx5_1");
    builder.near(0, 0, Distance::Node).near(1, 0, Distance::Pix).near(2, 1, Distance::Pix);
    PlanRequest request = tasks(1);
    request.gpus = {{2}};
    const Plan plan = planned(builder.build(), request);
    ASSERT_EQ(plan.excluded.size(), 1U);
    EXPECT_EQ(plan.excluded[0].code, "other-gpus");
    EXPECT_EQ(plan.excluded[0].reason,
              "It is nearest to GPU 1 (PIX), which this step does not have.");
}

TEST(Plan, ReasonOfSeveralGpusSaysThatEachHasItsOwn) {
    NodeBuilder builder;
    builder.gpus(2).hca("mlx5_0").hca("mlx5_1");
    builder.near(0, 0, Distance::Pix).near(1, 1, Distance::Pxb);
    EXPECT_EQ(planned(builder.build(), tasks(1)).ranks[0].reason,
              "GPUs 0-1 use mlx5_0, mlx5_1, each its nearest; the farthest two are joined by PCIe "
              "switches "
              "alone (PXB).");
}

TEST(Plan, EverythingAcrossSocketsIsSaidOnce) {
    NodeBuilder builder;
    builder.gpus(4).hca("mlx5_0").hca("mlx5_1").others(Distance::Sys);
    const Plan plan = planned(builder.build(), tasks(4));
    EXPECT_THAT(plan.notes, Contains("No usable HCA is on the socket of GPUs 0-3: mlx5_0, mlx5_1 "
                                     "are across sockets (SYS), where GPUDirect RDMA does not "
                                     "pay."));
}

TEST(Plan, PlaceholdersAreNoDevicesNames) {
    NodeBuilder builder;
    builder.gpus(2).hca("NIC0").hca("NIC1").near(0, 0, Distance::Pix).near(1, 1, Distance::Pix);
    Node node = builder.build();
    node.source = TopologySource::TopoMatrix;
    EXPECT_THAT(planned(node, tasks(2)).notes,
                Contains(HasSubstr("NIC0 and the like are a number in the saved topology")));
    node.hcas[0].name = node.hcas[1].name = "mlx5_0";
    EXPECT_THAT(planned(node, tasks(2)).notes, Not(Contains(HasSubstr("no device's name"))));
}

TEST(Plan, FlatMachineSpreadsEvenlyAndSaysSo) {
    NodeBuilder builder;
    builder.gpus(4).hca("mlx5_0").hca("mlx5_1").others(Distance::Phb);
    Node node = builder.build();
    node.flat = true;
    const Plan plan = planned(node, tasks(4));
    EXPECT_THAT(plan.pairs[1].hcas, ElementsAre(0));
    EXPECT_THAT(plan.pairs[2].hcas, ElementsAre(1));
    EXPECT_THAT(plan.notes, Contains(HasSubstr("No PCIe switch is to be seen")));
    node.flat = false;
    EXPECT_THAT(planned(node, tasks(4)).notes,
                Contains(HasSubstr("equally far from all GPUs (PHB)")));
}

TEST(Plan, NoGpuMeansCoresAndHcaByNumaNode) {
    NodeBuilder builder;
    builder.numa(0, "0-7").numa(1, "8-15").hca("mlx5_0").hca("mlx5_1");
    Node node = builder.build();
    node.hcas[0].numa = 1;
    node.hcas[1].numa = 0;
    const Plan plan = planned(node, tasks(2));
    EXPECT_THAT(plan.ranks[0].gpus, IsEmpty());
    EXPECT_THAT(plan.ranks[0].hcas, ElementsAre(1));
    EXPECT_EQ(plan.ranks[0].cpus.str(), "0-7");
    EXPECT_EQ(plan.ranks[0].distance, Distance::Node);
    EXPECT_EQ(plan.ranks[0].reason,
              "It has no GPU; mlx5_1 is near its cores; an equal part of the CPUs.");
}

TEST(Plan, NoUsableHcaSetsNothing) {
    NodeBuilder builder;
    builder.gpus(1).hca("mlx5_0");
    builder.last().state = PortState::Down;
    const Plan plan = planned(builder.build(), tasks(1));
    EXPECT_THAT(plan.env, IsEmpty());
    EXPECT_THAT(plan.notes, Contains(HasSubstr("NCCL_IB_HCA is left alone")));
    EXPECT_EQ(plan.ranks[0].distance, Distance::Unknown);
}

TEST(Plan, ImpossibleRequestsAreErrors) {
    EXPECT_THAT(makePlan(dgxLike(), tasks(0)).error().message, HasSubstr("at least one is needed"));
    PlanRequest request = tasks(1);
    request.gpus = {{8}};
    EXPECT_THAT(makePlan(dgxLike(), request).error().message,
                HasSubstr("GPU index 8 does not exist: the node has 8 GPUs"));
}

TEST(Rails, OrderBySubnetGivesTheSameRankTheSameRail) {
    // Two nodes whose cables are crossed: on the second, the first HCA is on the second subnet.
    PlanRequest request = tasks(2);
    request.agreed = Agreement::parse(
        "rt-agreed/1 rails=2 layer=RoCE subnets=10.1.0.0/24,10.2.0.0/24 order=subnet cross=no");
    ASSERT_TRUE(request.agreed);
    NodeBuilder straight;
    straight.gpus(2).roce("a", 1).roce("b", 2).others(Distance::Node);
    NodeBuilder crossed;
    crossed.gpus(2).roce("a", 2).roce("b", 1).others(Distance::Node);
    const Plan first = planned(straight.build(), request);
    const Plan second = planned(crossed.build(), request);
    EXPECT_THAT(first.hcas, ElementsAre(0, 1));
    EXPECT_THAT(second.hcas, ElementsAre(1, 0));
    EXPECT_THAT(first.ranks[0].hcas, ElementsAre(0));   // 10.1
    EXPECT_THAT(second.ranks[0].hcas, ElementsAre(1));  // 10.1
    EXPECT_EQ(envOf(first, "NCCL_CROSS_NIC"), "0");
}

TEST(Rails, CrossNicIsLeftAloneWhereRailsReachEachOtherOrNobodyKnows) {
    NodeBuilder builder;
    builder.gpus(2).roce("a", 1).roce("b", 2).others(Distance::Node);
    PlanRequest request = tasks(2);
    EXPECT_EQ(envOf(planned(builder.build(), request), "NCCL_CROSS_NIC"), "(unset)");
    request.agreed = Agreement::parse(
        "rt-agreed/1 rails=2 layer=RoCE subnets=10.1.0.0/24,10.2.0.0/24 order=subnet cross=yes");
    EXPECT_EQ(envOf(planned(builder.build(), request), "NCCL_CROSS_NIC"), "(unset)");
    request.agreed = Agreement::parse("rt-agreed/1 rails=2 layer=RoCE");
    EXPECT_EQ(envOf(planned(builder.build(), request), "NCCL_CROSS_NIC"), "(unset)");
}

TEST(Rails, OnlyAsManyAsEveryNodeHas) {
    PlanRequest request = tasks(8);
    request.agreed = Agreement::parse("rt-agreed/1 rails=4 layer=IB");
    const Plan plan = planned(dgxLike(), request);
    EXPECT_EQ(plan.hcas.size(), 4U);
    EXPECT_EQ(plan.excluded.size(), 4U);
    EXPECT_EQ(plan.excluded[0].code, "no-counterpart");
    EXPECT_THAT(plan.excluded[0].reason, HasSubstr("Only 4 HCAs are usable on every node"));
    for (const GpuPair& pair : plan.pairs) EXPECT_EQ(pair.hcas.size(), 1U);
}

TEST(PlanJson, ShapeAndRoundTrip) {
    NodeBuilder builder;
    builder.gpus(2, "0-11").hca("mlx5_1").hca("mlx5_1", 2).hca("mlx5_9");
    builder.last().state = PortState::Down;
    builder.near(0, 0, Distance::Pix).near(1, 1, Distance::Pix);
    Node node = builder.cpus("0-23").build();
    node.gpus[0].uuid.reset();
    node.gpus[1].pci.reset();
    const Plan plan = planned(node, tasks(2));
    const std::string json = planToJson(plan, node);
    EXPECT_THAT(
        json,
        HasSubstr(
            R"({"ranks":[{"local_rank":0,"gpus":[{"pci":"0000:10:00.0","index":0,"uuid":null}],)"
            R"("hcas":["mlx5_1"],"distance":"PIX","cpus":"0-5","reason":")"));
    EXPECT_THAT(json, HasSubstr(R"("gpus":[{"pci":null,"index":1,"uuid":"GPU-00000001)"));
    EXPECT_THAT(
        json,
        HasSubstr(
            R"("hcas":["mlx5_1","mlx5_1:2"],"excluded":[{"hca":"mlx5_9","code":"port-down","reason":")"));
    EXPECT_THAT(json, HasSubstr(R"("env":{"NCCL_IB_HCA":"=mlx5_1:1,mlx5_1:2"})"));
    const auto back = planFromJson(json, node);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, plan);
}

TEST(PlanJson, RefusesAnotherNodesPlan) {
    const Node node = dgxLike();
    const std::string json = planToJson(planned(node, tasks(8)), node);
    const Node small = NodeBuilder().gpus(1).hca("mlx5_0").build();
    EXPECT_THAT(planFromJson(json, small).error().message, HasSubstr("is not in the node"));
    for (const char* text : {"", "[]", "{}", R"({"ranks":7})", R"({"ranks":[{}]})"})
        EXPECT_FALSE(planFromJson(text, node).ok()) << text;
}

TEST(PlanTable, OneLinePerRank) {
    const Node node = dgxLike();
    const std::string table = planToTable(planned(node, tasks(2)), node);
    EXPECT_EQ(table,
              "rank  GPU  HCA                             distance  CPUs\n"
              "0     0-3  mlx5_0, mlx5_1, mlx5_2, mlx5_3  PIX       0-15,32-47\n"
              "1     4-7  mlx5_4, mlx5_5, mlx5_6, mlx5_7  PIX       16-31,48-63");
}

}  // namespace
}  // namespace rdmatune
