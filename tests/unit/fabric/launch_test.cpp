// How agents are started, which nodes, and what is kept between steps.
#include "tuner/fabric/launch.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "tuner/fabric/hostlist.hpp"
#include "tuner/fabric/reuse.hpp"
#include "tuner/fabric/sample.hpp"

namespace rdmatune::fabric {
namespace {

using Names = std::vector<std::string>;

TEST(Hosts, ListsAreExpanded) {
    EXPECT_EQ(*expandHosts("a"), Names{"a"});
    EXPECT_EQ(*expandHosts("a,b , c"), (Names{"a", "b", "c"}));
    EXPECT_EQ(*expandHosts("gpu[08-11]"), (Names{"gpu08", "gpu09", "gpu10", "gpu11"}));
    EXPECT_EQ(*expandHosts("r[1-2]n[01,03]x,login"),
              (Names{"r1n01x", "r1n03x", "r2n01x", "r2n03x", "login"}));
    EXPECT_EQ(expandHosts("n[0-9999]")->size(), 10000U);
    EXPECT_TRUE(expandHosts("")->empty());
}

TEST(Hosts, WhatIsNoListIsAnError) {
    for (const char* list : {"a[", "a]", "a[1", "a[1-]", "a[-1]", "a[2-1]", "a[x]", "a[1,]",
                             "a[[1]]", "a[0-99999999]", "a[0-1000][0-1000][0-1000]"})
        EXPECT_FALSE(expandHosts(list).ok()) << list;
}

bool has(const Names& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

TEST(Launch, AgentsInheritNothingOfTheStep) {
    const Variables own{"PATH=/bin",
                        "HOME=/home/u",
                        "SLURM_NTASKS=64",
                        "SLURM_JOB_ID=7",
                        "CUDA_VISIBLE_DEVICES=0",
                        "SLURM_CPU_BIND=cores",
                        "SLURM_CONF=/etc/slurm/slurm.conf",
                        "RDMA_TUNE_BUDGET=3",
                        "LD_PRELOAD=/x.so"};
    const Variables kept = agentVariables(own);
    for (const char* name :
         {"PATH", "HOME", "SLURM_CONF", "RDMA_TUNE_BUDGET", "SLURM_RDMA_TUNE_NESTED"})
        EXPECT_TRUE(valueOf(kept, name).has_value()) << name;
    for (const char* name :
         {"SLURM_NTASKS", "SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES", "SLURM_CPU_BIND", "LD_PRELOAD"})
        EXPECT_FALSE(valueOf(kept, name).has_value()) << name;
}

TEST(Launch, OneSrunStartsOneAgentPerNode) {
    const SlurmStep step{"77", "0", 3, {}};
    const Invocation srun =
        srunCommand(step, {"a1", "a2", "b1"}, "/opt/bin/rdma-tune", 4.5, {"PATH=/bin"});
    EXPECT_EQ(srun.arguments.front(), "srun");
    for (const char* word : {"--overlap", "--jobid=77", "--nodelist=a1,a2,b1",
                             "--ntasks-per-node=1", "--mpi=none", "agent", "4.5"})
        EXPECT_TRUE(has(srun.arguments, word)) << word;
    const auto tasks = std::find(srun.arguments.begin(), srun.arguments.end(), "-n");
    ASSERT_NE(tasks, srun.arguments.end());
    EXPECT_EQ(*(tasks + 1), "3");
}

TEST(Launch, TemplatesAreFilledInForEachHost) {
    const auto commands =
        templateCommands("ssh -o 'Foo Bar' {host}", {"h1", "h2"}, "/bin/rdma-tune", 5, {});
    ASSERT_TRUE(commands.ok());
    ASSERT_EQ(commands->size(), 2U);
    const Names expected{"ssh",      "-o", "Foo Bar",  "h2", "/bin/rdma-tune", "agent",
                         "--budget", "5",  "--number", "1",  "--host",         "h2"};
    EXPECT_EQ((*commands)[1].arguments, expected);
    const auto placed = templateCommands("run {host} -- {agent} --more", {"h1", "h2"}, "rt", 5, {});
    ASSERT_TRUE(placed.ok());
    EXPECT_EQ((*placed)[0].arguments.back(), "--more");
    EXPECT_FALSE(templateCommands("", {"h1"}, "rt", 5, {}).ok());
    EXPECT_FALSE(templateCommands("ssh 'x", {"h1"}, "rt", 5, {}).ok());
}

TEST(Launch, TheStepsNodesAreKnownFromTheEnvironment) {
    const SlurmStep step{"1", "", 2, {}};
    const auto soon = [] { return Clock::now() + std::chrono::milliseconds(300); };
    EXPECT_EQ(*stepHosts(step, {"SLURM_STEP_NODELIST=n[1-2]", "SLURM_JOB_NODELIST=n[1-4]"}, soon()),
              (Names{"n1", "n2"}));
    EXPECT_EQ(*stepHosts(step, {"SLURM_JOB_NODELIST=m[1-2]"}, soon()), (Names{"m1", "m2"}));
    EXPECT_FALSE(stepHosts(step, {"SLURM_JOB_NODELIST=m[1-4]"}, soon()).ok())
        << "four nodes are not the step's two";
}

TEST(Launch, WhatSrunSaysOfItsTasksIsUnderstood) {
    using Set = std::set<int>;
    EXPECT_EQ(endedTasks("srun: error: gpu02: task 1: Killed"), Set{1});
    EXPECT_EQ(endedTasks("srun: error: gpu[02-03]: tasks 1-2,5: Exited with exit code 1"),
              (Set{1, 2, 5}));
    EXPECT_EQ(endedTasks("srun: error: gpu02: task 1: Segmentation fault (core dumped)"), Set{1});
    for (const char* line :
         {"", "srun: error: gpu02: task x: Killed", "srun: error: task", "task 1: Killed",
          "srun: error: a: task 1: ", "srun: error: a: tasks 3-1: Killed",
          "srun: error: a: tasks 0-99999999: Killed", "srun: error: a: task 1: running"})
        EXPECT_TRUE(endedTasks(line).empty()) << line;
}

TEST(Launch, OutputOfAProgram) {
    const auto soon = [](int ms) { return Clock::now() + std::chrono::milliseconds(ms); };
    const Variables path{"PATH=/usr/bin:/bin"};
    EXPECT_EQ(*outputOf({{"/bin/echo", "hello"}, path}, soon(5000)), "hello\n");
    EXPECT_FALSE(outputOf({{"/nonexistent/program"}, path}, soon(5000)).ok());
    const auto start = Clock::now();
    EXPECT_FALSE(outputOf({{"/bin/sleep", "30"}, path}, soon(200)).ok());
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
}

Names manyHosts(int count) {
    Names out;
    for (int i = 0; i < count; ++i) out.push_back("n" + std::to_string(i));
    return out;
}

/// `leaves` switches with equal shares of `count` hosts.
std::string topologyOf(int leaves, int count) {
    std::string out = "SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[0-" +
                      std::to_string(count - 1) + "] Switches=leaf[0-9]\n";
    for (int leaf = 0; leaf < leaves; ++leaf)
        out += "SwitchName=leaf" + std::to_string(leaf) + " Level=0 LinkSpeed=1 Nodes=n[" +
               std::to_string(leaf * count / leaves) + "-" +
               std::to_string((leaf + 1) * count / leaves - 1) + "] \n";
    return out;
}

TEST(Sample, CoversEveryLeafSwitch) {
    const Names hosts = manyHosts(10000);
    const Sample sample = sampleHosts(hosts, topologyOf(200, 10000), 256);
    EXPECT_EQ(sample.hosts.size(), 256U);
    EXPECT_EQ(sample.leaves, 200);
    std::set<int> leaves;
    for (const std::string& host : sample.hosts) leaves.insert(std::stoi(host.substr(1)) / 50);
    EXPECT_EQ(leaves.size(), 200U);
    EXPECT_EQ(std::set<std::string>(sample.hosts.begin(), sample.hosts.end()).size(), 256U);
    EXPECT_EQ(sample.text, "measured 256 of 10000 nodes, some on each of the 200 leaf switches");
}

TEST(Sample, WithMoreLeavesThanPlacesOneEach) {
    const Sample sample = sampleHosts(manyHosts(1000), topologyOf(500, 1000), 100);
    EXPECT_EQ(sample.hosts.size(), 100U);
    std::set<int> leaves;
    for (const std::string& host : sample.hosts) leaves.insert(std::stoi(host.substr(1)) / 2);
    EXPECT_EQ(leaves.size(), 100U);
}

TEST(Sample, WithoutATopologyItIsSpreadEvenly) {
    const Sample sample = sampleHosts(manyHosts(1000), "", 10);
    EXPECT_EQ(sample.hosts, (Names{"n0", "n100", "n200", "n300", "n400", "n500", "n600", "n700",
                                   "n800", "n900"}));
    EXPECT_EQ(sample.leaves, 0);
    EXPECT_EQ(sampleHosts(manyHosts(3), "", 10).hosts.size(), 3U);
    EXPECT_EQ(sampleHosts(manyHosts(3), "", 1).hosts.size(), 2U);
}

class Reuse : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/rt-reuse-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        root_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    [[nodiscard]] std::string file() const {
        return store().directory() + "/" + ReuseStore::fileName(key_);
    }
    [[nodiscard]] ReuseStore store() const { return ReuseStore(root_); }

    std::string root_;
    ReuseKey key_{"cluster", "42", "0", "n1,n2", "1.0"};
};

TEST_F(Reuse, WhatWasKeptIsFoundAgainOnlyByTheSameKey) {
    EXPECT_FALSE(store().load(key_).ok());
    ASSERT_TRUE(store().save(key_, "profile\nagreement\n").ok());
    EXPECT_EQ(store().load(key_).value(), "profile\nagreement\n");
    struct stat facts {};
    ASSERT_EQ(stat(file().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0600U);
    ASSERT_EQ(stat(store().directory().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0700U);
    for (auto change : {&ReuseKey::cluster, &ReuseKey::job, &ReuseKey::restart, &ReuseKey::hosts,
                        &ReuseKey::version}) {
        ReuseKey other = key_;
        other.*change += "x";
        EXPECT_FALSE(store().load(other).ok());
    }
    ASSERT_TRUE(store().save(key_, "newer").ok());
    EXPECT_EQ(store().load(key_).value(), "newer");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(store().directory()), {}), 1)
        << "nothing temporary is left";
}

TEST_F(Reuse, ALinkInsteadOfTheFileIsNotFollowed) {
    ASSERT_TRUE(store().save(key_, "ours").ok());
    std::filesystem::rename(file(), root_ + "/elsewhere");
    std::filesystem::create_symlink(root_ + "/elsewhere", file());
    EXPECT_FALSE(store().load(key_).ok());
    ASSERT_TRUE(store().save(key_, "new").ok()) << "the link itself is replaced";
    std::ifstream other(root_ + "/elsewhere");
    std::string text{std::istreambuf_iterator<char>(other), {}};
    EXPECT_NE(text.find("ours"), std::string::npos) << "and what it led to is untouched";
}

TEST_F(Reuse, WhatOthersCanWriteIsNotTrusted) {
    ASSERT_TRUE(store().save(key_, "ours").ok());
    chmod(file().c_str(), 0640);
    EXPECT_FALSE(store().load(key_).ok());
    chmod(file().c_str(), 0600);
    EXPECT_TRUE(store().load(key_).ok());
    std::filesystem::create_hard_link(file(), root_ + "/second");
    EXPECT_FALSE(store().load(key_).ok());
    std::filesystem::remove(root_ + "/second");
    chmod(store().directory().c_str(), 0755);
    EXPECT_FALSE(store().load(key_).ok());
    EXPECT_FALSE(store().save(key_, "x").ok());
}

TEST_F(Reuse, ADirectoryOfSomebodyElseIsNotUsed) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
    ASSERT_TRUE(store().save(key_, "ours").ok());
    ASSERT_EQ(chown(file().c_str(), 12345, 12345), 0);
    EXPECT_FALSE(store().load(key_).ok());
    ASSERT_EQ(chown(store().directory().c_str(), 12345, 12345), 0);
    EXPECT_FALSE(store().load(key_).ok());
    EXPECT_FALSE(store().save(key_, "x").ok());
}

TEST_F(Reuse, ALinkInsteadOfTheDirectoryIsNotFollowed) {
    std::filesystem::create_directory(root_ + "/real");
    chmod((root_ + "/real").c_str(), 0700);
    std::filesystem::create_directory_symlink(root_ + "/real", store().directory());
    EXPECT_FALSE(store().save(key_, "x").ok());
    EXPECT_FALSE(store().load(key_).ok());
}

TEST_F(Reuse, APipeInsteadOfTheFileDoesNotHang) {
    ASSERT_TRUE(store().save(key_, "ours").ok());
    std::filesystem::remove(file());
    ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
    EXPECT_FALSE(store().load(key_).ok());
}

TEST_F(Reuse, OldOnesAreRemoved) {
    ReuseKey old = key_;
    old.job = "1";
    ASSERT_TRUE(store().save(old, "old").ok());
    const std::string old_file = store().directory() + "/" + ReuseStore::fileName(old);
    const timespec times[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, old_file.c_str(), times, 0), 0);
    ASSERT_TRUE(store().save(key_, "new").ok());
    EXPECT_FALSE(std::filesystem::exists(old_file));
    EXPECT_TRUE(std::filesystem::exists(file()));
}

}  // namespace
}  // namespace rdmatune::fabric
