#include "spank/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace rdmatune::spank {
namespace {

using testing::HasSubstr;

class Settings : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/rdma-tune-settings-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        folder_ = name;
        chmod(name, 0755);
        file_ = folder_ + "/site.conf";
        write("# nothing\n");
        sources_.plugstack = {"config=" + file_};
        sources_.plugin = folder_ + "/lib/spank_rdma_tune.so";
    }
    void TearDown() override {
        const std::string command = "rm -rf '" + folder_ + "'";
        EXPECT_EQ(std::system(command.c_str()), 0);
    }
    void write(const std::string& text) {
        std::ofstream(file_) << text;
        chmod(file_.c_str(), 0644);
    }
    std::string folder_;
    std::string file_;
    Sources sources_;
    Environment environment_;
};

TEST_F(Settings, SlurmstepdReadsNoFileThatAUserNames) {
    const std::string other = folder_ + "/user.conf";
    std::ofstream(other) << "node_timeout = 299\nstrict = yes\n";
    environment_.set("RDMA_TUNE_CONFIG", other);
    environment_.set("RDMA_TUNE_TUNER", "/user/tuner.so");
    environment_.set("RDMA_TUNE_MODE", "auto");
    const Environment seen = switches(environment_);
    EXPECT_EQ(seen.strings(), std::vector<std::string>{"RDMA_TUNE_MODE=auto"});
    const Result<Options> options = resolve(sources_, seen);
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->mode, Mode::Auto);
    EXPECT_EQ(options->config, file_);
    EXPECT_FALSE(options->strict);
    // The child, who is the user, gets the user's words all the same.
    passOn(*options, sources_, environment_);
    EXPECT_EQ(*environment_.get("RDMA_TUNE_CONFIG"), other);
    EXPECT_EQ(*environment_.get("RDMA_TUNE_TUNER"), "/user/tuner.so");
}

TEST_F(Settings, LaterPlacesWin) {
    write("default = bind\nbudget = 1\nverbose = yes\nnode_timeout = 3\n");
    sources_.plugstack.emplace_back("budget=2");
    Result<Options> options = resolve(sources_, environment_);
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->mode, Mode::Bind);
    EXPECT_TRUE(options->site_default);
    EXPECT_DOUBLE_EQ(options->budget_s, 2);
    EXPECT_DOUBLE_EQ(options->node_timeout_s, 3);
    environment_.set("RDMA_TUNE_BUDGET", "3");
    environment_.set("RDMA_TUNE_MODE", "auto");
    options = resolve(sources_, environment_);
    ASSERT_TRUE(options);
    EXPECT_DOUBLE_EQ(options->budget_s, 3);
    EXPECT_EQ(options->mode, Mode::Auto);
    EXPECT_FALSE(options->site_default);
    sources_.flag = "off,budget=4,verbose=no";
    options = resolve(sources_, environment_);
    ASSERT_TRUE(options);
    EXPECT_DOUBLE_EQ(options->budget_s, 4);
    EXPECT_EQ(options->mode, Mode::Off);
    EXPECT_FALSE(options->verbose);
}

TEST_F(Settings, TheUserMayNameAnotherFile) {
    const std::string other = folder_ + "/other.conf";
    std::ofstream(other) << "budget = 9\n";
    chmod(other.c_str(), 0644);
    environment_.set("RDMA_TUNE_CONFIG", other);
    const Result<Options> options = resolve(sources_, environment_);
    ASSERT_TRUE(options);
    EXPECT_DOUBLE_EQ(options->budget_s, 9);
}

TEST_F(Settings, ErrorsSayWhere) {
    write("\nbudgte = 1\n");
    EXPECT_THAT(resolve(sources_, environment_).error().message,
                HasSubstr(file_ + ":2: unknown key"));
    write("");
    sources_.plugstack.emplace_back("defautl=auto");
    EXPECT_THAT(resolve(sources_, environment_).error().message,
                HasSubstr("plugstack.conf: unknown key 'defautl'"));
}

TEST_F(Settings, WhatWasAskedIsKnownInSpiteOfABrokenFile) {
    write("nonsense\n");
    EXPECT_EQ(asked(sources_, environment_).mode, Mode::Off);
    sources_.plugstack.emplace_back("defautl=auto");  // does not hide its neighbour
    sources_.plugstack.emplace_back("default=auto");
    EXPECT_EQ(asked(sources_, environment_).mode, Mode::Auto);
    EXPECT_TRUE(asked(sources_, environment_).site_default);
    sources_.flag = "strict,bind";
    EXPECT_EQ(asked(sources_, environment_).mode, Mode::Bind);
    EXPECT_TRUE(asked(sources_, environment_).strict);
    EXPECT_FALSE(asked(sources_, environment_).site_default);
}

TEST_F(Settings, TheProgramIsFoundBesideThePluginAndChecked) {
    const std::string command =
        "cd '" + folder_ +
        "' && mkdir -m 755 bin lib && touch lib/spank_rdma_tune.so bin/rdma-tune "
        "lib/libnccl-tuner-rdmatune.so && chmod 755 bin/rdma-tune";
    ASSERT_EQ(std::system(command.c_str()), 0);
    const Result<Options> options = resolve(sources_, environment_);
    ASSERT_TRUE(options);
    EXPECT_EQ(options->program, folder_ + "/bin/rdma-tune");
    EXPECT_EQ(options->tuner, folder_ + "/lib/libnccl-tuner-rdmatune.so");
    EXPECT_TRUE(checkProgram(*options, sources_));
    chmod(options->program.c_str(), 0777);
    EXPECT_THAT(checkProgram(*options, sources_).error().message, HasSubstr("written by anybody"));
    Options nowhere;
    EXPECT_THAT(checkProgram(nowhere, sources_).error().message, HasSubstr("was not found"));
}

TEST_F(Settings, ChildrenLearnWhatTheirEnvironmentDoesNotSay) {
    sources_.plugstack = {
        "config=" + file_,          "budget=2",        "verbose=yes", "default=auto",
        "program=/opt/x/rdma-tune", "load_peermem=yes"};
    sources_.flag = "strict,budget=4";
    environment_.set("RDMA_TUNE_BUDGET", "3");
    environment_.set("RDMA_TUNE_VERBOSE", "no");
    const Result<Options> options = resolve(sources_, environment_);
    ASSERT_TRUE(options);
    passOn(*options, sources_, environment_);
    EXPECT_EQ(*environment_.get("RDMA_TUNE_BUDGET"), "4");    // the flag beats the variable
    EXPECT_EQ(*environment_.get("RDMA_TUNE_VERBOSE"), "no");  // which beats plugstack.conf
    EXPECT_EQ(*environment_.get("RDMA_TUNE_STRICT"), "yes");
    EXPECT_EQ(*environment_.get("RDMA_TUNE_CONFIG"), file_);
    EXPECT_EQ(environment_.get("RDMA_TUNE_PROGRAM"), nullptr);
    EXPECT_EQ(environment_.get("RDMA_TUNE_DEFAULT"), nullptr);
    // The bare flag in both of Slurm's forms adds nothing.
    for (const char* bare : {"", "(null)"}) {
        Environment clean;
        Sources plain;
        plain.flag = bare;
        plain.plugstack = {"config=" + file_};
        const Result<Options> defaults = resolve(plain, clean);
        ASSERT_TRUE(defaults);
        passOn(*defaults, plain, clean);
        for (const std::string& variable : clean.strings())
            EXPECT_TRUE(variable.starts_with("RDMA_TUNE_CONFIG=") ||
                        variable.starts_with("RDMA_TUNE_TUNER="))
                << variable;
    }
}

}  // namespace
}  // namespace rdmatune::spank
