#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tuner/config/options.hpp"
#include "tuner/config/paths.hpp"

namespace rdmatune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class File : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/rdma-tune-config-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        folder_ = name;
        path_ = folder_ + "/rdma-tune.conf";
    }
    void TearDown() override {
        const std::string command = "rm -rf '" + folder_ + "'";
        EXPECT_EQ(std::system(command.c_str()), 0);
    }
    void write(const std::string& text) {
        std::ofstream(path_, std::ios::binary) << text;
        chmod(path_.c_str(), 0644);
    }
    /// The error of reading `text`, without the path.
    std::string errorOf(const std::string& text) {
        write(text);
        Options options;
        options.budget_s = 7;
        const Status status = applyFile(options, path_);
        EXPECT_DOUBLE_EQ(options.budget_s, 7) << "half applied";
        if (status) return "";
        EXPECT_EQ(status.error().message.rfind(path_, 0), 0U) << status.error().message;
        return status.error().message.substr(path_.size());
    }
    std::string folder_;
    std::string path_;
};

TEST_F(File, ReadsEveryKindOfLine) {
    write(
        "# site\n"
        "\xef\xbb\xbf# not a mark here\n"
        "default = auto\n"
        "[rdma-tune]\n"
        "  budget = 3      ; short\n"
        "\tStrict = Yes\r\n"
        "\n"
        "topology = gpu[0-9]*=/etc/rdma-tune/gpu.xml\n"
        "topology = old*=/etc/rdma-tune/old.txt\n"
        "hca_exclude = mlx5_0\n"
        "hca_exclude = mlx5_1, 0000:03:00.0\n"
        "rule = allreduce bytes=1M-64M nodes=4+ tree simple\n"
        "rule = broadcast ring ll128\n"
        "load_peermem = on\n");
    Options options;
    const Status status = applyFile(options, path_);
    // The second line is no comment: the mark counts only at the file's very beginning.
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr(":2: "));
    write(
        "\xef\xbb\xbf# site\n"
        "default = auto\n"
        "[rdma-tune]\n"
        "  budget = 3      ; short\n"
        "\tStrict = Yes\r\n"
        "\n"
        "topology = gpu[0-9]*=/etc/rdma-tune/gpu.xml\n"
        "topology = old*=/etc/rdma-tune/old.txt\n"
        "hca_exclude = mlx5_0\n"
        "hca_exclude = mlx5_1, 0000:03:00.0\n"
        "rule = allreduce bytes=1M-64M nodes=4+ tree simple\n"
        "rule = broadcast ring ll128\n"
        "load_peermem = on\n");
    const Status again = applyFile(options, path_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(options.mode, Mode::Auto);
    EXPECT_TRUE(options.site_default);
    EXPECT_DOUBLE_EQ(options.budget_s, 3);
    EXPECT_TRUE(options.strict);
    EXPECT_TRUE(options.load_peermem);
    EXPECT_THAT(options.topology, ElementsAre(std::make_pair("gpu[0-9]*", "/etc/rdma-tune/gpu.xml"),
                                              std::make_pair("old*", "/etc/rdma-tune/old.txt")));
    EXPECT_THAT(options.hca_exclude, ElementsAre("mlx5_0", "mlx5_1", "0000:03:00.0"));
    EXPECT_THAT(options.rules,
                ElementsAre("allreduce bytes=1M-64M nodes=4+ tree simple", "broadcast ring ll128"));
    EXPECT_THAT(options.rule_origins, ElementsAre(path_ + ":11", path_ + ":12"));
}

TEST_F(File, ErrorsNameTheLine) {
    EXPECT_THAT(errorOf("\n\nbudgte = 3\n"), HasSubstr(":3: unknown key 'budgte'"));
    EXPECT_THAT(errorOf("budget = soon\n"), HasSubstr(":1: budget: expected a number from 0.1"));
    EXPECT_THAT(errorOf("budget = 61\n"), HasSubstr("from 0.1 to 60"))
        << "a step's credential must outlive measuring";
    EXPECT_THAT(errorOf("budget = 3\nbudget = 4\n"), HasSubstr(":2: 'budget' was given before"));
    EXPECT_THAT(errorOf("[fabric]\nbudget = 3\n"), HasSubstr(":2: unknown section [fabric]"));
    EXPECT_THAT(errorOf("budget = 3\njust words\n"), HasSubstr(":2: expected KEY = VALUE"));
    EXPECT_THAT(errorOf("topology = gpu*=relative.xml\n"),
                HasSubstr(":1: topology: expected HOST"));
    EXPECT_THAT(errorOf("hca_include = mlx5_0 mlx5_1\n"), HasSubstr(":1: hca_include: expected"));
    EXPECT_THAT(errorOf("default = on\n"), HasSubstr("expected off, bind or auto, not 'on'"));
    EXPECT_THAT(errorOf("sample_nodes = 1\n"), HasSubstr(":1: sample_nodes"));
    EXPECT_THAT(errorOf("refresh = yes\n"), HasSubstr("unknown key 'refresh'"));
    EXPECT_THAT(errorOf("rule =\n"), HasSubstr(":1: rule: expected a rule"));
    EXPECT_THAT(errorOf("rule = " + std::string(300, 'x') + "\n"), HasSubstr(":1: is longer than"));
    EXPECT_THAT(errorOf(std::string("bud\0get = 3\n", 12)), HasSubstr(":1: contains a zero byte"));
    EXPECT_THAT(errorOf(std::string(70000, '#')), HasSubstr("larger than 64 KB"));
}

TEST_F(File, AnIndentedLineIsALineOfItsOwn) {
    EXPECT_THAT(errorOf("hca_include = mlx5_0\n  mlx5_1\n"), HasSubstr(":2: expected KEY = VALUE"));
}

TEST_F(File, RefusesWhatOthersCanWrite) {
    write("budget = 3\n");
    Options options;
    for (const mode_t mode : {0664, 0646}) {
        ASSERT_EQ(chmod(path_.c_str(), mode), 0);
        const Status status = applyFile(options, path_);
        ASSERT_FALSE(status);
        EXPECT_THAT(status.error().message, HasSubstr("chmod go-w"));
    }
    EXPECT_DOUBLE_EQ(options.budget_s, 5);
}

TEST_F(File, RefusesLinksFoldersAndFifos) {
    Options options;
    const std::string link = folder_ + "/link.conf";
    write("budget = 3\n");
    ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
    Status status = applyFile(options, link);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("symbolic link"));
    status = applyFile(options, folder_);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("not a regular file"));
    const std::string fifo = folder_ + "/fifo.conf";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    status = applyFile(options, fifo);  // must not wait for a writer
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("not a regular file"));
}

TEST_F(File, RefusesAnotherUsersFile) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
    write("budget = 3\n");
    ASSERT_EQ(chown(path_.c_str(), 12345, 0), 0);
    Options options;
    const Status status = applyFile(options, path_);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("belongs to user 12345; expected root"));
}

TEST_F(File, AMissingFileIsAnErrorUnlessItIsTheDefaultOne) {
    Options options;
    const Status status = applyFile(options, path_);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("No such file"));
    if (access(options.config.c_str(), F_OK) != 0) {
        EXPECT_TRUE(applyFile(options, options.config));
    }
}

TEST_F(File, LoadOptionsTakesTheFileFirstAndVariablesOverIt) {
    write("budget = 3\nsample_nodes = 10\n");
    setenv("RDMA_TUNE_CONFIG", path_.c_str(), 1);
    setenv("RDMA_TUNE_BUDGET", "4", 1);
    const Result<Options> options = loadOptions();
    unsetenv("RDMA_TUNE_CONFIG");
    unsetenv("RDMA_TUNE_BUDGET");
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_DOUBLE_EQ(options->budget_s, 4);
    EXPECT_EQ(options->sample_nodes, 10);
    EXPECT_EQ(options->program.front(), '/');
}

TEST_F(File, FindsProgramAndTunerBesideThePlugin) {
    const std::string command = "cd '" + folder_ +
                                "' && mkdir -p bin lib/slurm && touch bin/rdma-tune "
                                "lib/libnccl-tuner-rdmatune.so && chmod 755 . bin bin/rdma-tune";
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(findProgram(folder_ + "/lib/slurm/spank_rdma_tune.so"), folder_ + "/bin/rdma-tune");
    EXPECT_EQ(findTuner(folder_ + "/lib/slurm/spank_rdma_tune.so"),
              folder_ + "/lib/libnccl-tuner-rdmatune.so");
    EXPECT_EQ(findTuner(folder_ + "/bin/rdma-tune"), folder_ + "/lib/libnccl-tuner-rdmatune.so");
}

TEST_F(File, ChecksWhoCanReplaceTheProgram) {
    const std::string program = folder_ + "/rdma-tune";
    std::ofstream(program) << "#!/bin/sh\n";
    chmod(folder_.c_str(), 0755);
    chmod(program.c_str(), 0755);
    EXPECT_TRUE(checkProgram(program, geteuid()));
    chmod(program.c_str(), 0757);
    EXPECT_THAT(checkProgram(program, geteuid()).error().message, HasSubstr("written by anybody"));
    chmod(program.c_str(), 0644);
    EXPECT_THAT(checkProgram(program, geteuid()).error().message, HasSubstr("executed"));
    chmod(program.c_str(), 0755);
    chmod(folder_.c_str(), 0777);
    EXPECT_THAT(checkProgram(program, geteuid()).error().message, HasSubstr("written by anybody"));
    chmod(folder_.c_str(), 0755);
    EXPECT_THAT(checkProgram("rdma-tune", 0).error().message, HasSubstr("absolute path"));
    EXPECT_THAT(checkProgram(folder_ + "/none", 0).error().message, HasSubstr("No such file"));
    if (geteuid() == 0) {
        ASSERT_EQ(chown(program.c_str(), 12345, 0), 0);
        EXPECT_THAT(checkProgram(program, 0).error().message, HasSubstr("belongs to user 12345"));
        EXPECT_TRUE(checkProgram(program, 12345));
    }
}

}  // namespace
}  // namespace rdmatune
