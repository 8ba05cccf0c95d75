#include "tuner/report/system_report.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/unit/support/gdr_machine.hpp"
#include "tuner/gpudirect/gdr_judge.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune {
namespace {

FabricProfile slowProfile() {
    FabricProfile profile;
    profile.nodes = profile.nodes_measured = 4;
    profile.transport = ProfileTransport::Roce;
    profile.rails = 2;
    profile.rail_nominal_mbps = 50000;
    profile.rail_mbps = 48000;
    profile.ring = {30000, 33000, 60000, 55000};
    profile.tree = {31000, 39000, 50000, 41000};
    profile.complete = true;
    return profile;
}

SystemReport sample() {
    SystemReport report;
    report.version = "9.9.9";
    report.made = "2026-01-02 03:04 UTC";
    report.node = testing::gdrNode();
    PlanRequest request;
    request.local_tasks = 2;
    report.plan = makePlan(report.node, request).value();
    report.diagnosis = judgeGdr(report.node, GdrFacts{});
    report.profile = slowProfile();
    report.ranks = 8;
    report.choices = choicesFor(*report.profile, 2);
    return report;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(SystemReport, TextHasEverySection) {
    const std::string text = systemReportText(sample());
    for (const char* part :
         {"rdma-tune 9.9.9 report on n1, 2026-01-02 03:04 UTC", "\nNode\n", "\nPlan\n",
          "\nFindings\n", "not-visible", "\nFabric profile\n", "30.00 us", "worst edge 33.00 us",
          "60.00 GB/s", "RoCE", "NCCL's choice for allreduce, 4 nodes, 8 ranks", "mlx5_0"})
        EXPECT_TRUE(contains(text, part)) << part << "\nin\n" << text;
}

TEST(SystemReport, HtmlStandsAlone) {
    const std::string page = systemReportHtml(sample());
    EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0U);
    for (const char* part :
         {"<h2>Node</h2>", "<h2>Plan</h2>", "<h2>Findings</h2>", "<h2>Fabric profile</h2>",
          "<h2>NCCL's choice for allreduce</h2>", "mlx5_1", "PIX"})
        EXPECT_TRUE(contains(page, part)) << part;
    for (const char* part : {"http://", "https://", "<script", "src=", "@import", "url("})
        EXPECT_FALSE(contains(page, part)) << part;
}

TEST(SystemReport, HtmlEscapesWhateverComesFromOutside) {
    SystemReport report = sample();
    const std::string evil = "<script>alert('x')</script>\"&\x01";
    report.node.hostname = evil;
    report.node.hcas[0].name = evil;
    report.node.notes.push_back(evil);
    report.plan.notes.push_back(evil);
    report.plan.excluded.push_back({evil, evil, evil});
    report.plan.env.emplace_back(evil, evil);
    report.plan.ranks[0].reason = evil;
    report.diagnosis.findings.push_back({evil, Severity::Error, evil, evil, evil});
    report.diagnosis.env.push_back({evil, evil, evil});
    report.diagnosis.pairs.push_back({0, 0, GdrWay::No, evil});
    std::strcpy(report.profile->slow_node, "<b>node</b>");
    std::strcpy(report.profile->rules, "<i>&");
    report.version = report.made = evil;
    const std::string page = systemReportHtml(report);
    for (const char* part : {"<script", "<b>node", "<i>", "'x'", "\x01"})
        EXPECT_FALSE(contains(page, part)) << part;
    EXPECT_TRUE(contains(page, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp; "));
}

TEST(SystemReport, HcasOfOneGpuShareARowWhereTheSameIsTrue) {
    SystemReport report = sample();
    report.diagnosis.pairs = {
        {0, 0, GdrWay::Dmabuf, ""}, {0, 1, GdrWay::Dmabuf, ""}, {1, 1, GdrWay::No, "acs-redirect"}};
    const std::string page = systemReportHtml(report);
    EXPECT_TRUE(contains(page, "<span class=\"k\">mlx5_0</span>, <span class=\"k\">mlx5_1</span>"));
    EXPECT_TRUE(contains(page, "acs-redirect"));
}

TEST(SystemReport, JsonHoldsTheValuesTheyCameFrom) {
    const SystemReport report = sample();
    const std::string json = systemReportJson(report);
    for (const char* part :
         {"\"version\":\"9.9.9\"", "\"verdict\":\"not judged\"", "\"findings\":[", "\"ranks\":[",
          "\"alpha_us\":30.0", "\"with_profile\":"})
        EXPECT_TRUE(contains(json, part)) << part;
    SystemReport bare;
    EXPECT_TRUE(contains(systemReportJson(bare), "\"profile\":null"));
    EXPECT_TRUE(contains(systemReportJson(bare), "\"choices\":[]"));
}

TEST(SystemReport, ChoicesFollowTheProfile) {
    const auto rows = choicesFor(slowProfile(), 2);
    ASSERT_EQ(rows.size(), 12U);
    EXPECT_EQ(rows.front().bytes, 1024U);
    EXPECT_EQ(rows.back().bytes, std::uint64_t{4} << 30);
    EXPECT_EQ(rows.front().tuned.substr(0, 4), "tree")
        << "30 us a step: a ring of 8 is slow at 1 KiB";
    EXPECT_LT(rows.front().tree_us, rows.front().ring_us);
    EXPECT_GT(rows.back().ring_us, rows.front().ring_us);
    FabricProfile one = slowProfile();
    one.nodes = one.nodes_measured = 1;
    EXPECT_TRUE(choicesFor(one, 2).empty());
    FabricProfile neutral = slowProfile();
    neutral.neutral = true;
    EXPECT_TRUE(choicesFor(neutral, 2).empty());
}

TEST(SystemReport, EmptyNodeIsNoTrouble) {
    SystemReport report;
    report.diagnosis = judgeGdr(report.node, GdrFacts{});
    report.profile_problem = "checksum does not match";
    EXPECT_TRUE(contains(systemReportText(report), "not used: checksum does not match"));
    EXPECT_TRUE(contains(systemReportHtml(report), "Not used: checksum does not match"));
}

TEST(SystemReport, SmallWords) {
    EXPECT_EQ(sizeName(1024), "1 KiB");
    EXPECT_EQ(sizeName(std::uint64_t{1} << 30), "1 GiB");
    EXPECT_EQ(sizeName(1500), "1500 B");
    Diagnosis diagnosis;
    EXPECT_EQ(verdictOf(diagnosis), "healthy");
    diagnosis.pairs = {{0, 0, GdrWay::Unknown, "not-visible"}};
    EXPECT_EQ(verdictOf(diagnosis), "not judged") << "a saved topology tells nothing of drivers";
    diagnosis.pairs.push_back({1, 1, GdrWay::Dmabuf, ""});
    EXPECT_EQ(verdictOf(diagnosis), "healthy");
    diagnosis.findings = {{"a", Severity::Error, "", "", ""}, {"b", Severity::Warning, "", "", ""}};
    EXPECT_EQ(verdictOf(diagnosis), "1 error, 1 warning");
    diagnosis.findings.push_back({"c", Severity::Error, "", "", ""});
    EXPECT_EQ(verdictOf(diagnosis), "2 errors, 1 warning");
}

}  // namespace
}  // namespace rdmatune
