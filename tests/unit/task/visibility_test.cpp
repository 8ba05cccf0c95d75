// Which GPUs a task has and what CUDA_VISIBLE_DEVICES becomes, for each way Slurm hands them out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/task/task_fixture.hpp"
#include "tuner/task/own_gpus.hpp"
#include "tuner/task/step_gpus.hpp"

namespace rdmatune {
namespace {

using ::testing::Contains;
using testing::dgxLike;
using ::testing::ElementsAre;
using testing::facts;
using testing::fourGpus;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::planFor;
using testing::slurm;
using testing::valueOf;
using testing::wasSet;

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

TaskOutcome prepared(const Node& node, const Plan& plan, const TaskFacts& task) {
    return prepareTask(node, plan, {}, task);
}

OwnGpus own(const Node& node, const Plan& plan, const TaskFacts& task) {
    std::vector<int> step;
    for (const GpuPair& pair : plan.pairs) step.push_back(pair.gpu);
    return chooseGpus(node, plan, viewGpus(node, step, task), task);
}

TEST(Visibility, AllGpusOfTheStepStayVisibleInPciOrder) {
    const Node node = fourGpus();
    for (int rank = 0; rank < 4; ++rank) {
        const auto out =
            prepared(node, planFor(node, 4), facts(rank, 4, slurm("0,1,2,3", "0,1,2,3")));
        EXPECT_EQ(valueOf(out, kVisible), "0,1,2,3");
        EXPECT_EQ(valueOf(out, "UCX_NET_DEVICES"), "mlx5_" + std::to_string(rank) + ":1");
    }
}

TEST(Visibility, UnsetMeansAllOfTheStep) {
    const Node node = fourGpus();
    const auto out = prepared(node, planFor(node, 4), facts(2, 4));
    EXPECT_TRUE(wasSet(out, kVisible));
    EXPECT_EQ(valueOf(out, kVisible), "0,1,2,3");
}

TEST(Visibility, NumbersOfUnlikeGpusKeepTheOrderInWhichTheyWereChosen) {
    Node node = fourGpus();
    const Environment chosen{{kVisible, "2,0"}};
    EXPECT_TRUE(wasSet(prepared(node, planFor(node, 2), facts(0, 2, chosen)), "CUDA_DEVICE_ORDER"));
    node.gpus[3].model = "a small one for the screen";
    EXPECT_FALSE(
        wasSet(prepared(node, planFor(node, 2), facts(0, 2, chosen)), "CUDA_DEVICE_ORDER"));
    // UUIDs mean the same in every order, and without a choice there is nothing to keep.
    const Environment by_uuid{{kVisible, *node.gpus[2].uuid}};
    EXPECT_TRUE(
        wasSet(prepared(node, planFor(node, 2), facts(0, 2, by_uuid)), "CUDA_DEVICE_ORDER"));
    EXPECT_TRUE(wasSet(prepared(node, planFor(node, 2), facts(0, 2)), "CUDA_DEVICE_ORDER"));
}

TEST(Visibility, FewerTasksThanGpusPutEachRanksFirstGpuFirst) {
    const Node node = dgxLike();
    const Plan plan = planFor(node, 2);
    for (int rank = 0; rank < 2; ++rank) {
        const auto task = facts(rank, 2, slurm("0-7", "0,1,2,3,4,5,6,7"));
        EXPECT_EQ(valueOf(prepared(node, plan, task), kVisible), "0,4,1,2,3,5,6,7")
            << "the same order in every rank; device LOCALID is the rank's own";
        EXPECT_EQ(own(node, plan, task).gpus.front(), rank * 4);
    }
}

TEST(Visibility, ConstrainedDevicesAreCountedFromZero) {
    // The step has GPUs 2 and 3; the cgroup hides 0 and 1, so CUDA's numbers are 0 and 1.
    const Node node = fourGpus();
    auto task = facts(1, 2, slurm("2,3", "0,1"));
    task.openable_gpus = {{2, 3}};
    const auto out = prepared(node, planFor(node, 2, {{2, 3}}), task);
    EXPECT_EQ(valueOf(out, kVisible), "0,1");
    EXPECT_EQ(valueOf(out, "UCX_NET_DEVICES"), "mlx5_3:1");
    EXPECT_THAT(out.warnings, IsEmpty());
}

TEST(Visibility, UnconstrainedDevicesAreCountedOverTheWholeNode) {
    const Node node = fourGpus();
    auto task = facts(1, 2, slurm("2,3", "2,3"));
    task.openable_gpus = {{0, 1, 2, 3}};
    const auto out = prepared(node, planFor(node, 2, {{2, 3}}), task);
    EXPECT_EQ(valueOf(out, kVisible), "2,3");
    EXPECT_EQ(valueOf(out, "UCX_NET_DEVICES"), "mlx5_3:1");
}

TEST(Visibility, SlurmCountsByMinorCudaByPciAddress) {
    Node node = fourGpus();
    for (int i = 0; i < 4; ++i) node.gpus[i].minor = 3 - i;  // /dev/nvidia3 is the first on the bus
    auto task = facts(0, 1, slurm("3", "3"));
    task.openable_gpus = {{0, 1, 2, 3}};
    EXPECT_THAT(stepGpus(node, task.env, task.openable_gpus), ElementsAre(0));
    const auto out = prepared(node, planFor(node, 1, {{0}}), task);
    EXPECT_EQ(valueOf(out, kVisible), "0");
    EXPECT_EQ(valueOf(out, "UCX_NET_DEVICES"), "mlx5_0:1");
}

// NVIDIA/nccl-tests #300: every task sees "GPU 0", each another one.
TEST(Visibility, S33_PerTaskBindingIsFollowedAndWarnedAbout) {
    const Node node = fourGpus();
    const Plan plan = planFor(node, 2, {{0, 1}});
    for (int rank = 0; rank < 2; ++rank) {
        auto task = facts(rank, 2, slurm("0", "0"));
        task.openable_gpus = {{rank}};
        const auto out = prepared(node, plan, task);
        EXPECT_EQ(valueOf(out, kVisible), "0");
        EXPECT_EQ(valueOf(out, "UCX_NET_DEVICES"), "mlx5_" + std::to_string(rank) + ":1");
        EXPECT_EQ(valueOf(out, "NCCL_IB_HCA"), "=mlx5_0:1,mlx5_1:1") << "alike in all ranks";
        if (rank == 0) {
            EXPECT_THAT(out.warnings, Contains(HasSubstr("--gres-flags=allow-task-sharing")));
        }
    }
}

TEST(Visibility, TaskSharingShowsOneAndOpensAll) {
    const Node node = fourGpus();
    auto task = facts(2, 4, slurm("0,1,2,3", "2"));
    task.openable_gpus = {{0, 1, 2, 3}};
    const auto out = prepared(node, planFor(node, 4), task);
    EXPECT_EQ(valueOf(out, kVisible), "2");
    EXPECT_THAT(out.warnings, IsEmpty());
}

TEST(Visibility, PerTaskGpuOfAnotherRankBringsItsHcaAndCores) {
    const Node node = fourGpus();
    auto task = facts(0, 4, slurm("0,1,2,3", "0"));
    task.openable_gpus = {{3}};
    const Plan plan = planFor(node, 4);
    const auto out = prepared(node, plan, task);
    EXPECT_EQ(valueOf(out, "UCX_NET_DEVICES"), "mlx5_3:1");
    EXPECT_EQ(out.cpus, plan.ranks[3].cpus);
}

TEST(Visibility, TwoGpusPerTaskAreBothKept) {
    const Node node = fourGpus();
    auto task = facts(1, 2, slurm("0,1,2,3", "0,1"));
    task.openable_gpus = {{2, 3}};
    const auto out = prepared(node, planFor(node, 2), task);
    EXPECT_EQ(valueOf(out, kVisible), "0,1");
    EXPECT_EQ(valueOf(out, "UCX_NET_DEVICES"), "mlx5_2:1,mlx5_3:1");
}

TEST(Visibility, ClosestBindingOverlapsSoEachTaskIsShownItsOwn) {
    // --gpu-bind=closest: ranks 0 and 2 are on the first socket, 1 and 3 on the second.
    const Node node = fourGpus();
    const Plan plan = planFor(node, 4);
    std::set<int> all;
    for (int rank = 0; rank < 4; ++rank) {
        const bool first = rank % 2 == 0;
        auto task = facts(rank, 4, slurm("0,1,2,3", first ? "0,1" : "2,3"));
        task.openable_gpus = {{0, 1, 2, 3}};
        const auto choice = own(node, plan, task);
        ASSERT_EQ(choice.gpus.size(), 1U);
        EXPECT_EQ(choice.gpus.front() < 2, first);
        EXPECT_EQ(choice.visible_devices.value, std::to_string(choice.gpus.front()));
        all.insert(choice.gpus.front());
    }
    EXPECT_EQ(all.size(), 4U) << "no GPU is used twice";
}

TEST(Visibility, UsersOwnListIsNeverChanged) {
    const Node node = fourGpus();
    for (const char* mine : {"3,2,1,0", "1,0", "GPU-00000002-1111-2222-3333-444444444444"}) {
        auto env = slurm("0,1,2,3", "0,1,2,3");
        env[kVisible] = mine;  // GPU_DEVICE_ORDINAL still tells what Slurm had given
        const auto out = prepared(node, planFor(node, 4), facts(1, 4, env));
        EXPECT_FALSE(wasSet(out, kVisible)) << mine;
        EXPECT_EQ(valueOf(out, kVisible), mine);
    }
    EXPECT_EQ(valueOf(prepared(node, planFor(node, 4), facts(1, 4, {{kVisible, "3,2,1,0"}})),
                      "UCX_NET_DEVICES"),
              "mlx5_2:1")
        << "local rank 1 uses the second of them";
}

TEST(Visibility, WithoutOrdinalAscendingNumbersOfTheStepAreSlurms) {
    const Node node = fourGpus();
    const std::vector<int> step{2, 3};
    const auto origin = [&](const char* value, const char* gpus) {
        Environment env{{kVisible, value}};
        if (gpus != nullptr) env["SLURM_STEP_GPUS"] = gpus;
        return viewGpus(node, step, facts(0, 2, env)).origin;
    };
    EXPECT_EQ(origin("2,3", "2,3"), GpuView::Origin::Slurm);
    EXPECT_EQ(origin("0,1", "2,3"), GpuView::Origin::Slurm);
    EXPECT_EQ(origin("1", "2,3"), GpuView::Origin::Slurm);
    EXPECT_EQ(origin("3,2", "2,3"), GpuView::Origin::User);
    EXPECT_EQ(origin("7", "2,3"), GpuView::Origin::User);
    EXPECT_EQ(origin("0,1", nullptr), GpuView::Origin::User);
}

TEST(Visibility, MigInstancesAreLeftAsTheyAre) {
    Node node = fourGpus();
    node.gpus[1].mig = {"MIG-aaaa", "MIG-bbbb"};
    auto env = slurm("0,1,2,3", "MIG-bbbb");
    const auto out = prepared(node, planFor(node, 4), facts(0, 4, env));
    EXPECT_EQ(valueOf(out, kVisible), "MIG-bbbb");
    EXPECT_FALSE(wasSet(out, kVisible));
    EXPECT_EQ(valueOf(out, "UCX_NET_DEVICES"), "mlx5_1:1") << "its GPU's HCA";
    env = slurm("0", "MIG-GPU-00000003-1111-2222-3333-444444444444/1/0");  // driver before 470
    EXPECT_EQ(valueOf(prepared(node, planFor(node, 4), facts(0, 4, env)), "UCX_NET_DEVICES"),
              "mlx5_3:1");
    env = slurm("0", "MIG-unknown");
    EXPECT_THAT(prepared(node, planFor(node, 4), facts(0, 4, env)).warnings,
                Contains(HasSubstr("does not know")));
}

TEST(Visibility, CudaStopsAtTheFirstWrongNumber) {
    const Node node = fourGpus();
    EXPECT_THAT(viewGpus(node, {0, 1, 2, 3}, facts(0, 1, {{kVisible, "1,9,2"}})).visible,
                ElementsAre(1));
    EXPECT_THAT(viewGpus(node, {0, 1, 2, 3}, facts(0, 1, {{kVisible, ""}})).visible, IsEmpty());
    EXPECT_THAT(viewGpus(node, {0, 1, 2, 3}, facts(0, 1, {{kVisible, "NoDevFiles"}})).visible,
                IsEmpty());
}

TEST(Visibility, AmdGpusAreLeftToTheirOwnVariables) {
    Node node = fourGpus();
    for (Gpu& gpu : node.gpus) gpu.vendor = "amd";
    const auto out = prepared(node, planFor(node, 4), facts(1, 4));
    EXPECT_EQ(valueOf(out, kVisible), "(untouched)");
    EXPECT_EQ(valueOf(out, "UCX_NET_DEVICES"), "mlx5_1:1");
}

TEST(StepGpus, WhatCanBeOpenedIsTheTruth) {
    const Node node = fourGpus();
    const auto of = [&](Environment env, std::optional<std::vector<int>> openable) {
        return stepGpus(node, env, openable);
    };
    EXPECT_THAT(of({}, {}), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(of({{"SLURM_STEP_GPUS", "2,3"}}, {}), ElementsAre(2, 3));
    EXPECT_THAT(of({{"SLURM_JOB_GPUS", "0-1"}}, {}), ElementsAre(0, 1));
    EXPECT_THAT(of({{"SLURM_STEP_GPUS", "2,3"}}, {{0, 1, 2, 3}}), ElementsAre(2, 3));
    EXPECT_THAT(of({{"SLURM_STEP_GPUS", "0,1"}}, {{2, 3}}),
                ElementsAre(2, 3));  // wrong: opened wins
    EXPECT_THAT(of({{"SLURM_STEP_GPUS", "0,9"}}, {{2}}), ElementsAre(2));
    EXPECT_THAT(of({}, {std::vector<int>{}}), IsEmpty());
}

TEST(FitPlan, StaysWhileTheTaskSeesGpusOfThePlan) {
    const Node node = fourGpus();
    PlanRequest request;
    request.gpus = {{0, 1}};
    request.local_tasks = 2;
    const Plan plan = planFor(node, 2, {{0, 1}});
    auto task = facts(0, 2, slurm("0,1", "0"));
    task.openable_gpus = {{1}};
    EXPECT_EQ(*fitPlan(node, request, plan, task), plan);
}

TEST(FitPlan, WrongStepIsPlannedAnew) {
    const Node node = fourGpus();
    PlanRequest request;
    request.gpus = {{0, 1}};
    request.local_tasks = 2;
    const Plan plan = planFor(node, 2, {{0, 1}});
    auto task = facts(0, 2, slurm("0,1", "0,1"));
    task.openable_gpus = {{2, 3}};
    EXPECT_THAT(fitPlan(node, request, plan, task)->hcas, ElementsAre(2, 3));
    // One each: the neighbours see others, so all ranks plan for all GPUs, alike.
    task.openable_gpus = {{3}};
    task.env = slurm("0", "0");
    EXPECT_THAT(fitPlan(node, request, plan, task)->hcas, ElementsAre(0, 1, 2, 3));
}

TEST(FitPlan, UsersShorterListIsPlannedFor) {
    const Node node = fourGpus();
    const Plan plan = planFor(node, 2);
    PlanRequest request;
    request.local_tasks = 2;
    EXPECT_THAT(fitPlan(node, request, plan, facts(0, 2, {{kVisible, "0,1"}}))->hcas,
                ElementsAre(0, 1));
    EXPECT_EQ(*fitPlan(node, request, plan, facts(0, 2, {{kVisible, "0"}})), plan)
        << "one GPU for two ranks: the other rank may have another one";
}

}  // namespace
}  // namespace rdmatune
