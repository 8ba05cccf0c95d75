// Pinned choices: what a site writes, the compact form, and which rule decides.
#include "tuner/model/rules.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "tuner/config/rule_text.hpp"
#include "tuner/profile/profile.hpp"

namespace rdmatune {
namespace {

using model::Algorithm;
using model::Collective;
using model::Protocol;
using model::Rule;
using model::RuleSet;

std::string compiled(const std::string& rule) {
    const Result<std::string> result = compileRule(rule);
    return result ? result.value() : "error: " + result.error().message;
}

TEST(RuleText, CompactForms) {
    EXPECT_EQ(compiled("collective=allreduce bytes=0-64K nodes=2-4 algorithm=tree protocol=ll"),
              "allreduce:0-65536:2-4:tree:ll");
    EXPECT_EQ(compiled("algorithm=ring"), "*:0-*:0-*:ring:*");
    EXPECT_EQ(compiled("  protocol=simple\tbytes=1M-  "), "*:1048576-*:0-*:*:simple");
    EXPECT_EQ(compiled("nodes=8- algorithm=nccl"), "*:0-*:8-*:nccl:*");
    EXPECT_EQ(compiled("Nodes=8 Algorithm=Tree bytes=2g"), "*:2147483648-2147483648:8-8:tree:*");
    EXPECT_EQ(compiled("protocol=ll bytes=0-256K"), "*:0-262144:0-*:*:ll");
}

TEST(RuleText, MistakesSayWhatWasExpected) {
    const std::pair<const char*, const char*> kCases[] = {
        {"", "pins nothing"},
        {"collective=allreduce bytes=0-64K", "pins nothing"},
        {"algorithm=tre", "expected one of tree, ring"},
        {"algorithm=tree,ring", "expected one of tree, ring"},
        {"algoritm=tree", "unknown key \"algoritm\""},
        {"algorithm tree", "KEY=VALUE"},
        {"algorithm=", "KEY=VALUE"},
        {"=tree", "KEY=VALUE"},
        {"algorithm=tree algorithm=ring", "given twice"},
        {"collective=all algorithm=tree", "expected one of broadcast"},
        {"protocol=ll256", "expected one of ll, ll128, simple"},
        {"bytes=64KB algorithm=tree", "a size"},
        {"bytes=-1 algorithm=tree", "a size"},
        {"bytes=64K-1K algorithm=tree", "a size"},
        {"bytes=1-2-3 algorithm=tree", "a size"},
        {"bytes=99999999999G algorithm=tree", "a size"},
        {"nodes=0 algorithm=tree", "a number of nodes"},
        {"nodes=4-2 algorithm=tree", "a number of nodes"},
        {"nodes=two algorithm=tree", "a number of nodes"},
        {"algorithm=nccl protocol=ll", "no protocol="},
        {"algorithm=tree protocol=ll", "at most 256K"},
        {"protocol=ll bytes=0-512K", "at most 256K"},
        {"collective=allgather algorithm=tree", "allreduce only"},
    };
    for (const auto& [rule, expected] : kCases)
        EXPECT_NE(compiled(rule).find(expected), std::string::npos)
            << rule << " -> " << compiled(rule);
}

TEST(RuleText, ErrorsNameTheLine) {
    const auto result =
        compileRules({"algorithm=ring", "algorithm=rin"}, {"/etc/x.conf:3", "/etc/x.conf:4"});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message.substr(0, 20), "/etc/x.conf:4: rule:");
    const auto unnamed = compileRules({"algorithm=rin"}, {});
    ASSERT_FALSE(unnamed);
    EXPECT_EQ(unnamed.error().message.substr(0, 7), "rule 1:");
}

TEST(RuleText, WhatDoesNotFitIsAnErrorNotADroppedRule) {
    const std::vector<std::string> many(RuleSet::kMax + 1, "algorithm=ring");
    const auto result = compileRules(many, {});
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("rule 49: a profile has no room"), std::string::npos);
    const std::vector<std::string> long_ones(40,
                                             "collective=reducescatter bytes=1048577-2097153 "
                                             "nodes=100000-200000 algorithm=ring protocol=simple");
    EXPECT_FALSE(compileRules(long_ones, {}));
    EXPECT_TRUE(compileRules(std::vector<std::string>(RuleSet::kMax, "algorithm=ring"), {}));
}

TEST(Rules, CompiledTextIsReadBackAndFitsAProfile) {
    const auto text =
        compileRules({"collective=allreduce bytes=0-64K nodes=2-4 algorithm=tree protocol=ll",
                      "nodes=8- algorithm=nccl", "collective=allgather bytes=1M- protocol=simple"},
                     {});
    ASSERT_TRUE(text);
    RuleSet set;
    ASSERT_TRUE(model::parseRules(text.value().c_str(), set));
    ASSERT_EQ(set.count, 3U);
    EXPECT_EQ(set.rule[0].bytes_to, 65536U);
    FabricProfile profile;
    profile.nodes = 4;
    text.value().copy(profile.rules, sizeof profile.rules - 1);
    char line[kProfileTextMax];
    EXPECT_GT(formatProfile(profile, line, sizeof line), 0U);
    EXPECT_EQ(describeRules(text.value()).at(0),
              "allreduce, 0 bytes to 64K, 2 to 4 nodes: tree, ll");
}

TEST(Rules, TheFirstThatFitsDecides) {
    RuleSet set;
    ASSERT_TRUE(model::parseRules(
        "allreduce:0-65536:2-4:tree:ll/*:0-*:8-*:nccl:*/*:100-*:0-*:ring:*", set));
    EXPECT_EQ(set.find(Collective::AllReduce, 65536, 4), &set.rule[0]);
    EXPECT_EQ(set.find(Collective::AllReduce, 65537, 4), &set.rule[2]);
    EXPECT_EQ(set.find(Collective::AllReduce, 65536, 5), &set.rule[2]);
    EXPECT_EQ(set.find(Collective::AllGather, 1, 8), &set.rule[1]);
    EXPECT_EQ(set.find(Collective::AllGather, 99, 7), nullptr);
}

TEST(Rules, CompactFormIsStrict) {
    RuleSet set;
    EXPECT_TRUE(model::parseRules("", set));
    EXPECT_EQ(set.count, 0U);
    for (const char* bad : {"/",
                            "x",
                            "allreduce",
                            "allreduce:0-1:0-1:tree",
                            "allreduce:0-1:0-1:tree:ll/",
                            "/allreduce:0-1:0-1:tree:ll",
                            "allreduce:1-0:0-1:tree:ll",
                            "allreduce:01-2:0-1:tree:ll",
                            "allreduce:0-1:0-1:tree:ll:x",
                            "all:0-1:0-1:tree:ll",
                            "allreduce:0-1:5-4:tree:ll",
                            "allreduce:0-1:0-1:*:*",
                            "allreduce:0-1:0-1:nccl:ll",
                            "*:0-*:0-*:tree:ll",
                            "allreduce:0-99999999999999999999:0-1:tree:*",
                            "allreduce:0-1:0-4294967296:tree:*",
                            "allreduce:-:0-1:tree:*",
                            "allreduce:*-1:0-1:tree:*",
                            "allreduce:0-1:0-1:treee:*",
                            "allreduce:0-1:0-1:tre:*",
                            "AllReduce:0-1:0-1:tree:*"})
        EXPECT_FALSE(model::parseRules(bad, set)) << bad;
    std::string many = "*:0-*:0-*:ring:*";
    for (std::size_t i = 1; i < RuleSet::kMax; ++i) many += "/*:0-*:0-*:ring:*";
    EXPECT_TRUE(model::parseRules(many.c_str(), set));
    EXPECT_FALSE(model::parseRules((many + "/*:0-*:0-*:ring:*").c_str(), set));
}

TEST(Rules, RandomTextNeverReadsPastItsEnd) {
    std::mt19937 random(11);
    const std::string alphabet = "allreduce:0123456789-*/treingl";
    for (int i = 0; i < 20000; ++i) {
        const std::size_t length = random() % 64;
        // On the heap and exactly as long as needed, so that a sanitizer sees one byte too many.
        auto text = std::make_unique<char[]>(length + 1);
        for (std::size_t k = 0; k < length; ++k) text[k] = alphabet[random() % alphabet.size()];
        text[length] = '\0';
        RuleSet set;
        if (model::parseRules(text.get(), set)) {
            for (std::size_t k = 0; k < set.count; ++k) EXPECT_TRUE(set.rule[k].valid());
        }
    }
}

}  // namespace
}  // namespace rdmatune
