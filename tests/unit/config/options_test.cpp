#include "tuner/config/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace rdmatune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Flag, BareMeansAutoInEveryFormSlurmGivesIt) {
    for (const char* bare : {"", "(null)", " "}) {
        Options options;
        ASSERT_TRUE(applyFlag(options, bare)) << bare;
        EXPECT_EQ(options.mode, Mode::Auto) << bare;
        EXPECT_FALSE(options.site_default);
    }
}

TEST(Flag, KeysAddUp) {
    Options options;
    ASSERT_TRUE(applyFlag(options, "strict,bind,VERBOSE,refresh,budget=2.5"));
    EXPECT_EQ(options.mode, Mode::Bind);
    EXPECT_TRUE(options.strict);
    EXPECT_TRUE(options.verbose);
    EXPECT_TRUE(options.refresh);
    EXPECT_DOUBLE_EQ(options.budget_s, 2.5);
}

TEST(Flag, KeysWithoutAModeMeanAuto) {
    Options options;
    options.mode = Mode::Off;
    ASSERT_TRUE(applyFlag(options, "strict"));
    EXPECT_EQ(options.mode, Mode::Auto);
}

TEST(Flag, SwitchesCanBeTurnedOffAgain) {
    Options options;
    options.strict = true;
    ASSERT_TRUE(applyFlag(options, "auto,strict=no"));
    EXPECT_FALSE(options.strict);
}

TEST(Flag, BadValuesChangeNothing) {
    const std::pair<const char*, const char*> cases[] = {
        {"fast", "unknown key 'fast'"},
        {"strict,", "unknown key ''"},
        {"budget", "budget=SECONDS"},
        {"budget=0", "from 0.1 to 60 seconds"},
        {"budget=nan", "from 0.1 to 60 seconds"},
        {"budget=5s", "'5s'"},
        {"strict=perhaps", "yes or no"},
        {"auto=3", "without a value"},
        {"auto,off", "only one of"},
        {"program=/tmp/mine", "unknown key 'program'"},  // a user must not choose what runs
        {"config=/tmp/mine", "unknown key 'config'"},
    };
    for (const auto& [argument, message] : cases) {
        Options options;
        options.strict = true;
        options.budget_s = 7;
        const Status status = applyFlag(options, argument);
        ASSERT_FALSE(status) << argument;
        EXPECT_THAT(status.error().message, HasSubstr(message)) << argument;
        EXPECT_EQ(options.mode, Mode::Off) << argument;
        EXPECT_TRUE(options.strict) << argument;
        EXPECT_DOUBLE_EQ(options.budget_s, 7) << argument;
    }
}

TEST(Flag, HelpIsFoundAmongKeysAndListsThemAll) {
    EXPECT_TRUE(flagAsksForHelp("help"));
    EXPECT_TRUE(flagAsksForHelp("verbose,Help"));
    EXPECT_FALSE(flagAsksForHelp("verbose"));
    EXPECT_FALSE(flagAsksForHelp("(null)"));
    const std::string help = flagHelp();
    for (const OptionInfo& info : optionTable()) {
        if ((info.places & kFlag) == 0) continue;
        EXPECT_THAT(help, HasSubstr("\n  " + std::string(info.key)));
    }
    EXPECT_THAT(help, HasSubstr("budget=SECONDS"));
    EXPECT_THAT(help, Not(HasSubstr("load_peermem")));
}

TEST(Plugstack, TakesSiteKeysOnly) {
    Options options;
    ASSERT_TRUE(applyPlugstack(options, "default=auto"));
    ASSERT_TRUE(applyPlugstack(options, "config=/etc/site.conf"));
    ASSERT_TRUE(applyPlugstack(options, "program=/opt/bin/rdma-tune"));
    ASSERT_TRUE(applyPlugstack(options, "load_peermem=yes"));
    EXPECT_EQ(options.mode, Mode::Auto);
    EXPECT_TRUE(options.site_default);
    EXPECT_EQ(options.config, "/etc/site.conf");
    EXPECT_EQ(options.program, "/opt/bin/rdma-tune");
    EXPECT_TRUE(options.load_peermem);
    for (const char* wrong : {"auto", "default=maybe", "config=relative", "rule=x", "nonsense=1"}) {
        const Status status = applyPlugstack(options, wrong);
        ASSERT_FALSE(status) << wrong;
        EXPECT_THAT(status.error().message, HasSubstr("plugstack.conf: "));
    }
}

TEST(Plugstack, FlagOverridesTheSitesDefault) {
    Options options;
    ASSERT_TRUE(applyPlugstack(options, "default=auto"));
    ASSERT_TRUE(applyFlag(options, "off"));
    EXPECT_EQ(options.mode, Mode::Off);
    EXPECT_FALSE(options.site_default);
}

TEST(Environment, ReadsKnownVariablesAndIgnoresEmptyOnes) {
    const std::map<std::string, std::string> env = {{"RDMA_TUNE_MODE", "bind"},
                                                    {"RDMA_TUNE_BUDGET", ""},
                                                    {"RDMA_TUNE_HCA_EXCLUDE", "mlx5_0, mlx5_9:1"},
                                                    {"RDMA_TUNE_TOPOLOGY", "/t.xml"},
                                                    {"RDMA_TUNE_PROGRAM", "/tmp/evil"}};
    const auto get = [&env](const char* name) -> const char* {
        const auto found = env.find(name);
        return found == env.end() ? nullptr : found->second.c_str();
    };
    Options options;
    options.hca_exclude = {"from_the_file"};
    ASSERT_TRUE(applyEnvironment(options, get));
    EXPECT_EQ(options.mode, Mode::Bind);
    EXPECT_DOUBLE_EQ(options.budget_s, 5);
    EXPECT_THAT(options.hca_exclude, ElementsAre("mlx5_0", "mlx5_9:1"));
    EXPECT_THAT(options.topology, ElementsAre(std::make_pair("*", "/t.xml")));
    EXPECT_EQ(options.program, "");
}

TEST(Environment, BadValueNamesTheVariableAndChangesNothing) {
    const std::map<std::string, std::string> env = {{"RDMA_TUNE_MODE", "bind"},
                                                    {"RDMA_TUNE_STRICT", "2"}};
    const auto get = [&env](const char* name) -> const char* {
        const auto found = env.find(name);
        return found == env.end() ? nullptr : found->second.c_str();
    };
    Options options;
    const Status status = applyEnvironment(options, get);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("RDMA_TUNE_STRICT: expected yes or no, not '2'"));
    EXPECT_EQ(options.mode, Mode::Off);
}

TEST(Table, DefaultsInTheTableAreThoseOfTheStruct) {
    // Setting every option to its documented default must change nothing.
    Options options;
    for (const OptionInfo& info : optionTable()) {
        if (info.fallback.empty() || (info.places & (kEnvironment | kPlugstack)) == 0) continue;
        const std::string word = std::string(info.key) + "=" + std::string(info.fallback);
        const Status status = (info.places & kPlugstack) != 0
                                  ? applyPlugstack(options, word)
                                  : applyVariable(options, info.key, info.fallback);
        ASSERT_TRUE(status) << word;
    }
    const Options fresh;
    EXPECT_EQ(options.mode, fresh.mode);
    EXPECT_EQ(options.strict, fresh.strict);
    EXPECT_EQ(options.verbose, fresh.verbose);
    EXPECT_EQ(options.config, fresh.config);
    EXPECT_EQ(options.budget_s, fresh.budget_s);
    EXPECT_EQ(options.node_timeout_s, fresh.node_timeout_s);
    EXPECT_EQ(options.task_timeout_s, fresh.task_timeout_s);
    EXPECT_EQ(options.load_peermem, fresh.load_peermem);
    EXPECT_EQ(options.gpu_memory, fresh.gpu_memory);
    EXPECT_EQ(options.sample_nodes, fresh.sample_nodes);
    EXPECT_EQ(options.slow_latency_factor, fresh.slow_latency_factor);
    EXPECT_EQ(options.slow_bandwidth_fraction, fresh.slow_bandwidth_fraction);
}

}  // namespace
}  // namespace rdmatune
