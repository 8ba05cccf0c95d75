// Launchers, NCCL's files, the node report, device files and CPUs.
#include "tuner/task/look.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "tests/unit/task/task_fixture.hpp"
#include "tuner/task/launcher.hpp"
#include "tuner/task/nccl_conf.hpp"
#include "tuner/task/report.hpp"

namespace rdmatune {
namespace {

using ::testing::ElementsAre;
using testing::fourGpus;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::planFor;

/// A folder of its own, removed at the end.
class Folder {
  public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "rt-task-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string write(const std::string& name, const std::string& text) const {
        const auto file = path_ / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
        return file.string();
    }
    [[nodiscard]] std::string str() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

TEST(Launcher, EachOne) {
    using E = Environment;
    EXPECT_EQ(localPlace(E{}), (LocalPlace{0, 1, ""}));
    EXPECT_EQ(localPlace(E{{"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "8"}}),
              (LocalPlace{3, 8, "torchrun"}));
    EXPECT_EQ(
        localPlace(E{{"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
        (LocalPlace{1, 4, "Open MPI"}));
    EXPECT_EQ(localPlace(E{{"MV2_COMM_WORLD_LOCAL_RANK", "1"}, {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}}),
              (LocalPlace{1, 2, "MVAPICH2"}));
    EXPECT_EQ(localPlace(E{{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}}),
              (LocalPlace{0, 2, "Intel MPI or MPICH"}));
    EXPECT_EQ(localPlace(E{{"PALS_LOCAL_RANKID", "5"}, {"PALS_LOCAL_SIZE", "6"}}),
              (LocalPlace{5, 6, "PALS"}));
    for (const auto& [launcher, rank, size] :
         {std::tuple{"jsrun", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"},
          std::tuple{"DeepSpeed", "LOCAL_RANK", "LOCAL_SIZE"},
          std::tuple{"Horovod", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"},
          std::tuple{"PMI", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"}})
        EXPECT_EQ(localPlace(E{{rank, "1"}, {size, "4"}}), (LocalPlace{1, 4, launcher}));
    EXPECT_EQ(localPlace(
                  E{{"FLUX_TASK_LOCAL_ID", "1"}, {"FLUX_JOB_SIZE", "7"}, {"FLUX_JOB_NNODES", "2"}}),
              (LocalPlace{1, 4, "Flux"}));
    EXPECT_EQ(localPlace(E{{"SLURM_LOCALID", "1"},
                           {"SLURM_NODEID", "2"},
                           {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"}}),
              (LocalPlace{1, 3, "Slurm"}));
}

TEST(Launcher, InnermostWinsAndNonsenseIsPassedOver) {
    Environment env{{"SLURM_LOCALID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "1"}};
    EXPECT_EQ(localPlace(env).launcher, "Slurm");
    env["LOCAL_RANK"] = "2";  // without its size
    EXPECT_EQ(localPlace(env).launcher, "Slurm");
    env["LOCAL_WORLD_SIZE"] = "2";  // rank 2 of 2
    EXPECT_EQ(localPlace(env).launcher, "Slurm");
    env["LOCAL_WORLD_SIZE"] = "4";
    EXPECT_EQ(localPlace(env), (LocalPlace{2, 4, "torchrun"}));
    // Inside an allocation SLURM_TASKS_PER_NODE may tell of fewer tasks than the step has.
    EXPECT_EQ(localPlace({{"SLURM_LOCALID", "3"}, {"SLURM_TASKS_PER_NODE", "1"}}).local_tasks, 1);
}

TEST(Launcher, TasksOnNode) {
    EXPECT_EQ(tasksOnNode("4(x2),3", 0), 4);
    EXPECT_EQ(tasksOnNode("4(x2),3", 2), 3);
    EXPECT_EQ(tasksOnNode("4(x2),3", 3), std::nullopt);
    for (const char* text : {"", "x", "4(x", "4(x0)", "4(x2", "4(y2)"})
        EXPECT_EQ(tasksOnNode(text, 0), std::nullopt) << text;
}

TEST(NcclConf, FilesInNcclsOrder) {
    const Folder folder;
    folder.write("nccl.conf", "NCCL_DEBUG=WARN\n# NCCL_IB_HCA=no\nNCCL_IB_HCA=site\nno equals\n");
    folder.write("home/.nccl.conf", "NCCL_DEBUG=INFO\n");
    const auto both = readNcclConf({{"HOME", folder.str() + "/home"}}, folder.str());
    EXPECT_EQ(both.values.at("NCCL_DEBUG"), "INFO");
    EXPECT_EQ(both.values.at("NCCL_IB_HCA"), "site");
    EXPECT_EQ(both.files.size(), 2U);
    const std::string mine = folder.write("mine.conf", "NCCL_DEBUG=TRACE\n");
    const auto named =
        readNcclConf({{"HOME", folder.str() + "/home"}, {"NCCL_CONF_FILE", mine}}, folder.str());
    EXPECT_EQ(named.values.at("NCCL_DEBUG"), "TRACE");
    EXPECT_THAT(readNcclConf({}, folder.str() + "/none").files, IsEmpty());
    // NCCL asks the password database and not HOME.
    const std::string real = folder.write("real/.nccl.conf", "NCCL_ALGO=Ring\nNCCL_PROTO=LL\n");
    folder.write("passwd", "daemon:x:1:1::/nowhere:/bin/sh\nme:x:" + std::to_string(::getuid()) +
                               ":7:Some One:" + folder.str() + "/real:/bin/sh\n");
    const auto by_passwd = readNcclConf({{"HOME", folder.str() + "/home"}}, folder.str());
    EXPECT_EQ(by_passwd.files.front(), real);
    EXPECT_EQ(by_passwd.values.at("NCCL_PROTO"), "LL");
    EXPECT_EQ(readNcclConf({{"NCCL_CONF_FILE", mine}}, folder.str()).values.count("NCCL_PROTO"),
              0U);
}

TEST(Look, OpenableGpus) {
    const Folder folder;
    Node node = fourGpus();
    node.source = TopologySource::HwlocXml;
    EXPECT_EQ(openableGpus(node, folder.str()), std::nullopt) << "no file at all: not this machine";
    folder.write("nvidia1", "");
    folder.write("nvidia3", "");
    EXPECT_EQ(openableGpus(node, folder.str()), (std::vector<int>{1, 3}));
    // A link is never followed, wherever it leads.
    std::filesystem::create_symlink("/dev/null", folder.str() + "/nvidia0");
    node.source = TopologySource::Live;
    EXPECT_EQ(openableGpus(node, folder.str()), (std::vector<int>{1, 3}));
    EXPECT_EQ(openableGpus(node, folder.str() + "/none"), std::vector<int>{})
        << "live: there are none";
    // In a container the driver shows the given GPUs only, and the others have no number.
    node.gpus[0].minor.reset();
    node.gpus[2].minor.reset();
    EXPECT_EQ(openableGpus(node, folder.str()), (std::vector<int>{1, 3}));
    node.gpus[1].minor.reset();
    node.gpus[3].minor.reset();
    EXPECT_EQ(openableGpus(node, folder.str()), std::nullopt) << "no driver tells anything";
    for (Gpu& gpu : node.gpus) {
        gpu.vendor = "amd";
        gpu.minor = gpu.index;
    }
    folder.write("dri/renderD129", "");
    EXPECT_EQ(openableGpus(node, folder.str()), (std::vector<int>{1}));
}

TEST(Look, AffinityCanBeReadLimitedAndRestored) {
    const CpuSet before = currentAffinity();
    ASSERT_FALSE(before.empty());
    const CpuSet one({before.list().front()});
    ASSERT_TRUE(setAffinity(one));
    EXPECT_EQ(currentAffinity(), one);
    EXPECT_TRUE((before - cpusetLimit()).empty()) << "the limit is wider than the affinity";
    EXPECT_EQ(currentAffinity(), one) << "and looking does not change it";
    ASSERT_TRUE(setAffinity(before));
    EXPECT_FALSE(setAffinity(CpuSet{}));
}

TEST(Look, PermittedIsTheAffinityWhereOnlyThatIsOurs) {
    const CpuSet bound = *CpuSet::parse("4-7");
    const CpuSet all = *CpuSet::parse("0-15");
    const CpuSet step = *CpuSet::parse("4-11");
    EXPECT_EQ(permittedCpus(bound, step, 16, {{"SLURM_CPUS_ON_NODE", "8"}}), step);
    EXPECT_EQ(permittedCpus(bound, all, 16, {{"SLURM_CPUS_ON_NODE", "16"}}), all);
    EXPECT_EQ(permittedCpus(bound, all, 16, {{"SLURM_CPUS_ON_NODE", "4"}}), bound);
    EXPECT_EQ(permittedCpus(bound, all, 16, {}), all);
}

TEST(Look, NetPluginOnPath) {
    const Folder folder;
    const std::string file = folder.write("b/libnccl-net.so", "x");
    EXPECT_EQ(netPluginOnPath({{"LD_LIBRARY_PATH", folder.str() + "/a::" + folder.str() + "/b"}}),
              file);
    EXPECT_EQ(netPluginOnPath({{"LD_LIBRARY_PATH", folder.str()}}), "");
    EXPECT_EQ(netPluginOnPath({}), "");
    EXPECT_FALSE(isReadableFile(folder.str()));
}

NodeReport report() {
    NodeReport out;
    out.node = fourGpus();
    out.request.local_tasks = 4;
    out.request.gpus = {{0, 1, 2, 3}};
    out.request.cpus = CpuSet::parse("0-15");
    out.request.hca_exclude = {"mlx5_9"};
    out.request.agreed = Agreement::parse("rt-agreed/1 rails=4 layer=IB");
    out.plan = planFor(out.node, 4);
    out.diagnosis.env = {{"NCCL_DMABUF_ENABLE", "0", "because"}};
    out.tuner = "/opt/tuner.so";
    return out;
}

TEST(Report, RoundTrip) {
    const NodeReport there = report();
    const auto back = reportFromJson(reportToJson(there));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(back->node, there.node);
    EXPECT_EQ(back->plan, there.plan);
    EXPECT_EQ(back->request.gpus, there.request.gpus);
    EXPECT_EQ(back->request.cpus, there.request.cpus);
    EXPECT_EQ(back->request.hca_exclude, there.request.hca_exclude);
    EXPECT_EQ(back->request.agreed, there.request.agreed);
    EXPECT_EQ(back->diagnosis.env, there.diagnosis.env);
    EXPECT_EQ(back->tuner, there.tuner);
    EXPECT_EQ(reportToJson(*back), reportToJson(there));
}

TEST(Report, RefusesOthers) {
    EXPECT_THAT(reportFromJson("").error().message, HasSubstr("not a node report"));
    EXPECT_THAT(reportFromJson(R"({"version":2})").error().message,
                HasSubstr("different releases"));
    EXPECT_FALSE(reportFromJson(R"({"version":1,"node":{},"request":{},"plan":{}})").ok());
}

TEST(TaskInput, Sections) {
    using namespace std::string_literals;
    const auto input = parseTaskInput("env 8\nA=1\0B=\n\0"s + "report 2\n{}new 1\nxend 0\n");
    ASSERT_TRUE(input.ok()) << input.error().message;
    EXPECT_THAT(input->env, ElementsAre("A=1", "B=\n"));
    EXPECT_EQ(input->report, "{}");
    for (const char* text : {"", "env 5\nabc", "env -1\n", "env x\n", "env 99999999999999999999\n",
                             "report 2\n{}", "end"})
        EXPECT_FALSE(parseTaskInput(text).ok()) << text;
}

}  // namespace
}  // namespace rdmatune
