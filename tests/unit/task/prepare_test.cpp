// The environment, the cores and the warnings of one task.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/task/task_fixture.hpp"

namespace rdmatune {
namespace {

using ::testing::Contains;
using testing::facts;
using testing::find;
using testing::fourGpus;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::planFor;
using testing::slurm;
using testing::valueOf;
using testing::wasSet;

constexpr const char* kTuner = "/opt/rdma-tune/lib/libnccl-tuner-rdmatune.so";

TaskFacts tuned(int rank, int tasks, Environment env = {}) {
    TaskFacts out = facts(rank, tasks, std::move(env));
    out.profile = "rt1 profile";
    out.tuner_path = kTuner;
    out.tuner_readable = true;
    return out;
}

TaskOutcome prepared(const TaskFacts& task, const Diagnosis& diagnosis = {}) {
    const Node node = fourGpus();
    return prepareTask(node, planFor(node, task.local_tasks), diagnosis, task);
}

TEST(Prepare, SetsEverythingOfATunedTask) {
    const auto out = prepared(tuned(3, 4));
    EXPECT_EQ(valueOf(out, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
    EXPECT_EQ(valueOf(out, "CUDA_VISIBLE_DEVICES"), "0,1,2,3");
    EXPECT_EQ(valueOf(out, "NCCL_IB_HCA"), "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1");
    EXPECT_EQ(valueOf(out, "UCX_NET_DEVICES"), "mlx5_3:1");
    EXPECT_EQ(valueOf(out, "NVSHMEM_ENABLE_NIC_PE_MAPPING"), "1");
    EXPECT_EQ(valueOf(out, "NVSHMEM_HCA_LIST"), "mlx5_3:1");
    EXPECT_EQ(valueOf(out, "NCCL_TUNER_PLUGIN"), kTuner);
    EXPECT_EQ(valueOf(out, "RDMA_TUNE_PROFILE"), "rt1 profile");
    EXPECT_EQ(out.cpus.str(), "12-15");
    for (const Setting& setting : out.settings)
        EXPECT_FALSE(setting.reason.empty()) << setting.name;
    EXPECT_THAT(out.warnings, IsEmpty());
}

TEST(Prepare, NothingThatIsSetIsOverwritten) {
    const Environment mine{{"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}, {"CUDA_VISIBLE_DEVICES", "1"},
                           {"NCCL_IB_HCA", "=mlx5_2:1"},           {"UCX_NET_DEVICES", "all"},
                           {"NVSHMEM_HCA_LIST", "mlx5_0:1"},       {"NCCL_NET_GDR_LEVEL", "SYS"},
                           {"NCCL_TUNER_PLUGIN", "none"},          {"RDMA_TUNE_PROFILE", "mine"}};
    Diagnosis diagnosis;
    diagnosis.env = {{"NCCL_NET_GDR_LEVEL", "LOC", "no way to GPU memory"}};
    const auto out = prepared(tuned(0, 4, mine), diagnosis);
    for (const Setting& setting : out.settings)
        EXPECT_EQ(setting.action, Setting::Action::Keep) << setting.name;
    for (const auto& [name, value] : mine) EXPECT_EQ(valueOf(out, name), value);
    EXPECT_EQ(find(out, "NVSHMEM_ENABLE_NIC_PE_MAPPING"), nullptr);
}

TEST(Prepare, NcclConfCountsAsSet) {
    TaskFacts task = tuned(0, 4);
    task.nccl_conf = {{"NCCL_IB_HCA", "mlx5_1"}, {"NCCL_TUNER_PLUGIN", "/site/tuner.so"}};
    task.nccl_conf_origin = "/etc/nccl.conf";
    const auto out = prepared(task);
    EXPECT_EQ(find(out, "NCCL_IB_HCA")->action, Setting::Action::Keep);
    EXPECT_EQ(find(out, "NCCL_IB_HCA")->reason, "it is set in /etc/nccl.conf");
    EXPECT_EQ(find(out, "NCCL_TUNER_PLUGIN")->action, Setting::Action::Keep);
}

TEST(Prepare, FindingsDecideGdrSettings) {
    Diagnosis diagnosis;
    diagnosis.env = {{"NCCL_DMABUF_ENABLE", "0", "the kernel is too old"}};
    const auto out = prepared(tuned(0, 4), diagnosis);
    EXPECT_TRUE(wasSet(out, "NCCL_DMABUF_ENABLE"));
    EXPECT_EQ(find(out, "NCCL_DMABUF_ENABLE")->reason, "the kernel is too old");
    EXPECT_EQ(find(prepared(tuned(0, 4)), "NCCL_DMABUF_ENABLE"), nullptr);
}

TEST(Prepare, CrossNicBelongsToOurList) {
    const Node node = fourGpus();
    Plan plan = planFor(node, 4);
    plan.env.emplace_back("NCCL_CROSS_NIC", "0");
    EXPECT_TRUE(wasSet(prepareTask(node, plan, {}, facts(0, 4)), "NCCL_CROSS_NIC"));
    EXPECT_EQ(find(prepareTask(node, plan, {}, facts(0, 4, {{"NCCL_IB_HCA", "mlx5_2"}})),
                   "NCCL_CROSS_NIC"),
              nullptr);
}

TEST(Prepare, WithoutProfileNoTuner) {
    TaskFacts task = tuned(0, 4);
    task.profile.clear();
    const auto out = prepared(task);
    EXPECT_EQ(find(out, "NCCL_TUNER_PLUGIN"), nullptr);
    EXPECT_EQ(find(out, "RDMA_TUNE_PROFILE"), nullptr);
    EXPECT_THAT(out.warnings, IsEmpty());
}

TEST(Prepare, TunerMissingInsideTheTaskIsOneLinePerNode) {
    for (int rank = 0; rank < 2; ++rank) {
        TaskFacts task = tuned(rank, 2);
        task.tuner_readable = false;
        const auto out = prepared(task);
        EXPECT_EQ(find(out, "NCCL_TUNER_PLUGIN"), nullptr);
        EXPECT_EQ(out.warnings.size(), rank == 0 ? 1U : 0U);
        if (rank == 0) {
            EXPECT_THAT(out.warnings[0], HasSubstr(std::string(kTuner) + " does not exist inside"));
        }
    }
}

// open-mpi/ompi #11949: whoever turns Slurm's GPU binding off must bind the CPUs itself.
TEST(Prepare, S35_CoresAreBoundWhateverTheGpuBinding) {
    EXPECT_EQ(prepared(facts(0, 4, slurm("0-3", "0,1,2,3"))).cpus.str(), "0-3");
    EXPECT_EQ(prepared(facts(2, 4, slurm("0-3", "0,1,2,3"))).cpus.str(), "8-11");
}

TEST(Prepare, CpuBindOfTheUserIsRespected) {
    TaskFacts task = facts(0, 4);
    task.cpu_bind_by_user = true;
    EXPECT_TRUE(prepared(task).cpus.empty());
    EXPECT_THAT(prepared(task).cpus_reason, HasSubstr("--cpu-bind"));
}

TEST(Prepare, AffinityNeverShrinksToNothing) {
    TaskFacts task = facts(0, 4);
    task.affinity = task.permitted = *CpuSet::parse("14-15");
    EXPECT_TRUE(prepared(task).cpus.empty());
    EXPECT_THAT(prepared(task).cpus_reason, HasSubstr("none of the planned CPUs 0-3"));
    task.permitted = *CpuSet::parse("2-15");
    EXPECT_EQ(prepared(task).cpus.str(), "2-3");
    task.affinity = *CpuSet::parse("2-3");
    EXPECT_TRUE(prepared(task).cpus.empty()) << "it is so already";
}

// NVIDIA/nccl-tests #206 and openucx/ucx #8229.
TEST(Warnings, S25_S27_LockedMemory) {
    for (const auto& [bytes, text] :
         {std::pair<std::uint64_t, const char*>{8192ULL << 10, "may lock 8 MiB"},
          std::pair<std::uint64_t, const char*>{64ULL << 10, "may lock 64 KiB"}}) {
        TaskFacts task = facts(0, 4);
        task.memlock = bytes;
        EXPECT_THAT(prepared(task).warnings, Contains(HasSubstr(text)));
        task.first_node = false;
        EXPECT_THAT(prepared(task).warnings, IsEmpty()) << "once in a job, not once a node";
    }
    TaskFacts task = facts(0, 4);
    task.memlock = 4ULL << 30;
    EXPECT_THAT(prepared(task).warnings, IsEmpty());
}

// NVIDIA/pyxis #73.
TEST(Warnings, S37_EnrootRestrictsDevices) {
    auto env = slurm("0", "0");
    env["ENROOT_RESTRICT_DEV"] = "y";
    TaskFacts task = facts(0, 4, env);
    task.openable_gpus = {{0}};
    EXPECT_THAT(prepared(task).warnings, Contains(HasSubstr("ENROOT_RESTRICT_DEV=n")));
    task.openable_gpus = {{0, 1, 2, 3}};
    EXPECT_THAT(prepared(task).warnings, IsEmpty());
}

// NVIDIA/pyxis #167: sbatch and srun differ in their environment; what is set does not.
TEST(Prepare, S43_SameSettingsUnderSbatchAndSrun) {
    auto srun = slurm("0,1,2,3", "0,1,2,3");
    auto sbatch = srun;
    sbatch.erase("SLURM_STEP_GPUS");
    sbatch["SLURM_JOB_GPUS"] = "0,1,2,3";
    sbatch["ENVIRONMENT"] = "BATCH";
    EXPECT_EQ(prepared(tuned(1, 4, srun)).settings, prepared(tuned(1, 4, sbatch)).settings);
}

// srun --export=ALL,NCCL_IB_HCA=a:1,b:1 arrives as a:1.
TEST(Warnings, S47_ListCutByExport) {
    auto env = slurm("0,1,2,3", "0,1,2,3");
    env["NCCL_IB_HCA"] = "mlx5_0:1";
    EXPECT_THAT(prepared(facts(0, 4, env)).warnings,
                Contains(HasSubstr("leaves one HCA of the 4 that are near the GPUs")));
    env["SLURM_EXPORT_ENV"] = "ALL,NCCL_IB_HCA=mlx5_0:1,mlx5_1:1,mlx5_2:1";
    EXPECT_THAT(prepared(facts(0, 4, env)).warnings,
                Contains(HasSubstr("srun --export splits its argument at every comma")));
    env["SLURM_EXPORT_ENV"] = "ALL,NCCL_IB_HCA=mlx5_0:1,FOO=1:2";
    EXPECT_THAT(prepared(facts(0, 4, env)).warnings, Not(Contains(HasSubstr("splits"))));
}

TEST(Warnings, UsersHcaListIsChecked) {
    const Node node = [] {
        Node out = fourGpus();
        out.hcas[3].state = PortState::Down;
        return out;
    }();
    const Plan plan = planFor(node, 4);
    const auto warnings = [&](const char* value) {
        return prepareTask(node, plan, {}, facts(0, 4, {{"NCCL_IB_HCA", value}})).warnings;
    };
    EXPECT_THAT(warnings("=mlx5_0,mlx5_1,mlx5_2"), IsEmpty());
    EXPECT_THAT(warnings("mlx5"),
                Contains(HasSubstr("takes mlx5_3, which the plan leaves out (port-down)")));
    EXPECT_THAT(warnings("ib0,mlx5_0,mlx5_1"), Contains(HasSubstr("ib0 matches no HCA")));
}

// aws-ofi-nccl #472 and nccl #1732.
TEST(Prepare, S49_S51_TunerByAbsolutePath) {
    EXPECT_EQ(valueOf(prepared(tuned(0, 4)), "NCCL_TUNER_PLUGIN").front(), '/');
    EXPECT_THAT(prepared(tuned(0, 4, {{"NCCL_TUNER_PLUGIN", "./x.so"}})).warnings,
                Contains(HasSubstr("rewrites to libnccl-tuner-./x.so.so")));
    EXPECT_THAT(prepared(tuned(0, 4, {{"NCCL_TUNER_PLUGIN", "x"}})).warnings, IsEmpty());
}

// coreweave/nccl-tests PR #84.
TEST(Prepare, S53_NetPluginOnThePathIsNamed) {
    TaskFacts task = facts(0, 4);
    task.net_plugin = "/opt/hpcx/lib/libnccl-net.so";
    EXPECT_THAT(find(prepared(task), "NCCL_NET_PLUGIN")->reason,
                HasSubstr("NCCL loads /opt/hpcx/lib/libnccl-net.so"));
    task.env["NCCL_NET_PLUGIN"] = "none";
    EXPECT_EQ(find(prepared(task), "NCCL_NET_PLUGIN"), nullptr);
}

TEST(Prepare, NodeWithoutGpusBindsCoresAndUcx) {
    Node node =
        testing::NodeBuilder().numa(0, "0-7").numa(1, "8-15").hca("mlx5_0").hca("mlx5_1").build();
    node.hcas[1].numa = 0;
    node.hcas[0].numa = 1;
    const auto out = prepareTask(node, planFor(node, 2), {}, facts(0, 2));
    EXPECT_EQ(find(out, "CUDA_VISIBLE_DEVICES"), nullptr);
    EXPECT_EQ(find(out, "CUDA_DEVICE_ORDER"), nullptr);
    EXPECT_EQ(valueOf(out, "UCX_NET_DEVICES"), "mlx5_1:1");
    EXPECT_EQ(find(out, "NVSHMEM_HCA_LIST"), nullptr);
    EXPECT_EQ(out.cpus.str(), "0-7");
}

}  // namespace
}  // namespace rdmatune
