#include "spank/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace rdmatune::spank {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(ShownLines, DropsWhatATerminalWouldObey) {
    EXPECT_THAT(shownLines("plain\n\x1b[31mred\x1b[0m\r\n\n\n  indented\ttab\x7f\n", 10),
                ElementsAre("plain", " [31mred [0m", "  indented tab"));
    EXPECT_THAT(shownLines("Gr\xc3\xb6\xc3\x9f"
                           "e\n",
                           10),
                ElementsAre("Gr\xc3\xb6\xc3\x9f"
                            "e"));
}

TEST(ShownLines, LimitsCountAndWidth) {
    EXPECT_THAT(shownLines("a\nb\nc\n", 2), ElementsAre("a", "b"));
    EXPECT_THAT(shownLines("abcdef\n", 9, 4), ElementsAre("abcd"));
    // A two-byte character at the edge goes as a whole.
    EXPECT_THAT(shownLines("abc\xc3\xb6z\n", 9, 4), ElementsAre("abc"));
    EXPECT_THAT(shownLines("", 3), IsEmpty());
}

TEST(Measured, TakesProfileAndAgreement) {
    const Result<Measured> both = parseMeasured("rt1 nodes=4 crc=1\nrt-agreed/1 rails=4\n");
    ASSERT_TRUE(both);
    EXPECT_EQ(both->profile, "rt1 nodes=4 crc=1");
    EXPECT_EQ(both->agreed, "rt-agreed/1 rails=4");
    const Result<Measured> alone = parseMeasured("rt1 nodes=4\n");
    ASSERT_TRUE(alone);
    EXPECT_EQ(alone->agreed, "");
}

TEST(Measured, RefusesEverythingElse) {
    for (const std::string& output :
         {std::string(), std::string("rt1 without a line end"), std::string("usage: ...\n"),
          std::string("rt1\x1b[0m\n"), "rt1 " + std::string(2048, 'x') + "\n",
          std::string("rt1\nsomething\n"), std::string("rt1\0two\n", 8)})
        EXPECT_FALSE(parseMeasured(output)) << output.substr(0, 40);
}

TEST(TaskReply, TakesEveryKindOfLine) {
    const Result<TaskReply> reply = parseTaskReply(
        "set NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\nset UCX_NET_DEVICES=\nunset ROCR_VISIBLE_DEVICES\n"
        "cpus 0-3,8\nsay two words\nend\nset IGNORED=1\n");
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_THAT(reply->set, ElementsAre(Pair("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"),
                                        Pair("UCX_NET_DEVICES", "")));
    EXPECT_THAT(reply->unset, ElementsAre("ROCR_VISIBLE_DEVICES"));
    ASSERT_TRUE(reply->cpus);
    EXPECT_EQ(reply->cpus->str(), "0-3,8");
    EXPECT_THAT(reply->say, ElementsAre("two words"));
}

TEST(TaskReply, IsAllOrNothing) {
    const std::pair<std::string, const char*> cases[] = {
        {"", "stopped before the end"},
        {"set NCCL_A=1\n", "stopped before the end"},
        {"set NCCL_A=1\nend", "stopped before the end"},  // cut in its last line
        {"set LD_PRELOAD=/tmp/x.so\nend\n", "no setting"},
        {"set PATH=/tmp\nend\n", "no setting"},
        {"set NCCL_A\nend\n", "no setting"},
        {"set NCCL_A B=1\nend\n", "no setting"},
        {"set NCCL_A=1\x01\nend\n", "no setting"},
        {"set =1\nend\n", "no setting"},
        {"set NCCL_A=" + std::string(20000, 'x') + "\nend\n", "no setting"},
        {"unset HOME\nend\n", "no setting"},
        {"cpus 3-1\nend\n", "no setting"},
        {"cpus \nend\n", "no setting"},
        {"run /bin/sh\nend\n", "no setting"},
    };
    for (const auto& [output, message] : cases) {
        const Result<TaskReply> reply = parseTaskReply(output);
        ASSERT_FALSE(reply) << output.substr(0, 60);
        EXPECT_THAT(reply.error().message, HasSubstr(message)) << output.substr(0, 60);
    }
}

TEST(TaskReply, SurvivesAnyBytes) {
    std::mt19937 random(7);
    const std::string words[] = {"set ", "unset ", "cpus ", "say ", "end",
                                 "\n",   "NCCL_X", "=",     "1-9,"};
    for (int round = 0; round < 20000; ++round) {
        std::string output;
        for (unsigned n = random() % 12; n > 0; --n) {
            if (random() % 4 == 0)
                output += static_cast<char>(random());
            else
                output += words[random() % std::size(words)];
        }
        const Result<TaskReply> reply = parseTaskReply(output);
        if (!reply) continue;
        EXPECT_THAT(output, HasSubstr("end\n"));
        for (const auto& [name, value] : reply->set) {
            EXPECT_EQ(name.find_first_of("= \n"), std::string::npos);
            EXPECT_EQ(value.find('\n'), std::string::npos);
        }
    }
}

TEST(Section, CountsBytes) {
    EXPECT_EQ(section("env", std::string("A=1\0", 4)), std::string("env 4\nA=1\0", 10));
}

TEST(StepNote, SurvivesItsText) {
    for (int bits = 0; bits < 3 * 256; ++bits) {
        StepNote note;
        note.mode = static_cast<Mode>(bits % 3);
        const int flags = bits / 3;
        note.strict = (flags & 1) != 0;
        note.verbose = (flags & 2) != 0;
        note.site_default = (flags & 4) != 0;
        note.quiet = (flags & 8) != 0;
        note.told = (flags & 16) != 0;
        note.cpu_bind = (flags & 32) != 0;
        note.refuse = (flags & 64) != 0;
        note.nested = (flags & 128) != 0;
        const auto back = StepNote::parse(note.str());
        ASSERT_TRUE(back) << note.str();
        EXPECT_EQ(*back, note);
    }
    for (const char* wrong : {"", "on", "auto,", "auto,loud", "strict", ",auto", "auto strict"})
        EXPECT_FALSE(StepNote::parse(wrong)) << wrong;
}

TEST(Environment, SetsReplacesAndRemoves) {
    char a[] = "A=1";
    char b[] = "B=x=y";
    char odd[] = "NOVALUE";
    char* strings[] = {a, b, odd, nullptr};
    Environment environment(strings);
    ASSERT_NE(environment.get("B"), nullptr);
    EXPECT_EQ(*environment.get("B"), "x=y");
    environment.set("A", "2");
    environment.unset("B");
    EXPECT_EQ(environment.get("B"), nullptr);
    EXPECT_THAT(environment.strings(), ElementsAre("A=2"));
    environment.set("C", "");
    EXPECT_EQ(environment.block(), std::string("A=2\0C=\0", 7));
    EXPECT_THAT(Environment(nullptr).strings(), IsEmpty());
}

TEST(Environment, DropsVariablesThatSrunCouldOnlyEmpty) {
    Environment environment;
    environment.set("SLURM_RDMA_TUNE_PROFILE", "");
    environment.set("SLURM_RDMA_TUNE_STEP", "off");
    environment.set("OTHER", "");
    environment.dropEmpty("SLURM_RDMA_TUNE_");
    EXPECT_THAT(environment.strings(), ElementsAre("SLURM_RDMA_TUNE_STEP=off", "OTHER="));
}

TEST(Remember, TellsOurSettingsFromTheUsers) {
    const std::string text = remember({{"NCCL_IB_HCA", "=mlx5_0"}, {"UCX_NET_DEVICES", "a,b"}});
    Environment environment;
    environment.set("NCCL_IB_HCA", "=mlx5_0");
    environment.set("UCX_NET_DEVICES", "a,c");  // changed by the user since
    EXPECT_THAT(stillOurs(text, environment), ElementsAre("NCCL_IB_HCA"));
    environment.set("UCX_NET_DEVICES", "a,b");
    EXPECT_THAT(stillOurs(text, environment), ElementsAre("NCCL_IB_HCA", "UCX_NET_DEVICES"));
    EXPECT_THAT(stillOurs(text, Environment()), IsEmpty());
    environment.set("PATH", "x");
    EXPECT_THAT(stillOurs(remember({{"PATH", "x"}}), environment), IsEmpty());
    EXPECT_THAT(stillOurs("", environment), IsEmpty());
    EXPECT_THAT(stillOurs(":,NCCL_IB_HCA,NCCL_IB_HCA:", environment), IsEmpty());
}

TEST(Environment, ADaemonsChildGetsNoLoaderVariables) {
    Environment environment;
    for (const char* name : {"LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "GCONV_PATH", "PATH",
                             "SLURM_STEP_GPUS", "RDMA_TUNE_BUDGET", "CUDA_VISIBLE_DEVICES", "HOME"})
        environment.set(name, "x");
    environment.keepForNode();
    for (const char* gone : {"LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "GCONV_PATH"})
        EXPECT_EQ(environment.get(gone), nullptr) << gone;
    for (const char* kept : {"SLURM_STEP_GPUS", "RDMA_TUNE_BUDGET", "CUDA_VISIBLE_DEVICES", "HOME"})
        EXPECT_NE(environment.get(kept), nullptr) << kept;
    EXPECT_NE(*environment.get("PATH"), "x");
}

}  // namespace
}  // namespace rdmatune::spank
