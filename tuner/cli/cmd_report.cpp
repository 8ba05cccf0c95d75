// `rdma-tune report`: everything that is known of a node and its fabric, on one page.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>

#include "tuner/base/version.hpp"
#include "tuner/cli/command.hpp"
#include "tuner/cli/site.hpp"
#include "tuner/cli/this_node.hpp"
#include "tuner/gpudirect/gdr_judge.hpp"
#include "tuner/report/system_report.hpp"

namespace rdmatune::cli {
namespace {

struct ReportOptions {
    std::string topology;
    std::string profile;
    std::string html;
    std::string config;
    int tasks = 0;
    bool json = false;
};

std::string now() {
    const std::time_t seconds = std::time(nullptr);
    std::tm fields{};
    std::array<char, 32> text{};
    if (gmtime_r(&seconds, &fields) == nullptr ||
        std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &fields) == 0)
        return "";
    return text.data();
}

/// The whole file or none: written beside it, then renamed.
Status writeWhole(const std::string& path, const std::string& text) {
    const std::string beside = path + ".part";
    const auto failed = [&](const std::string& what) {
        Error error{what + ": " + std::strerror(errno)};
        std::remove(beside.c_str());
        return error;
    };
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(beside.c_str(), "we"),
                                                               [](std::FILE*) { return 0; });
    if (!file) return failed("cannot create " + beside);
    const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
    if (std::fclose(file.get()) != 0 || !written) return failed("cannot write " + beside);
    if (std::rename(beside.c_str(), path.c_str()) != 0) return failed("cannot rename to " + path);
    return Done{};
}

void addProfile(const ReportOptions& given, SystemReport& report) {
    const char* text =
        given.profile.empty() ? std::getenv("RDMA_TUNE_PROFILE") : given.profile.c_str();
    if (text == nullptr || *text == '\0') text = std::getenv("SLURM_RDMA_TUNE_PROFILE");
    if (text == nullptr || *text == '\0') return;
    FabricProfile profile;
    if (const ProfileError error = parseProfile(text, profile); error != ProfileError::None) {
        report.profile_problem = describe(error);
        return;
    }
    report.profile = profile;
    const auto per_node =
        static_cast<std::uint32_t>(std::max<std::size_t>(1, report.plan.ranks.size()));
    report.ranks = per_node * profile.nodes;
    report.choices = choicesFor(profile, per_node);
}

Result<SystemReport> make(const ReportOptions& given) {
    SystemReport report;
    report.version = kVersion;
    report.made = now();
    Options site;
    const bool saved = !given.topology.empty();
    // A saved topology is of another machine: this one's configuration does not apply to it.
    if (!saved || !given.config.empty()) {
        auto read = siteOptions(saved ? Environment{} : ownEnvironment(), given.config);
        if (!read) return read.error();
        site = std::move(*read);
    }
    auto node = saved ? readTopologyFile(given.topology) : nodeHere(site, {});
    if (!node) return node.error();
    report.node = std::move(*node);
    PlanRequest request = requestFrom(site, {});
    request.local_tasks =
        given.tasks > 0 ? given.tasks : std::max(1, static_cast<int>(report.node.gpus.size()));
    auto plan = makePlan(report.node, request);
    if (!plan) return plan.error();
    report.plan = std::move(*plan);
    report.diagnosis =
        saved ? judgeGdr(report.node, GdrFacts{}) : diagnoseHere(report.node, SystemRoots{});
    addProfile(given, report);
    return report;
}

int run(const ReportOptions& given) {
    const auto report = make(given);
    if (!report) return fail("report: " + report.error().message);
    if (!given.html.empty()) {
        const std::string page = systemReportHtml(report.value());
        if (given.html == "-")
            return printOut(page) ? kExitOk : fail("report: standard output cannot be written");
        if (const Status status = writeWhole(given.html, page); !status)
            return fail("report: " + status.error().message);
        if (!given.json) return kExitOk;
    }
    const std::string text =
        given.json ? systemReportJson(report.value(), 2) + "\n" : systemReportText(report.value());
    return printOut(text) ? kExitOk : fail("report: standard output cannot be written");
}

}  // namespace

Command addReport(CLI::App& app, CLI::App*& subcommand) {
    const auto given = std::make_shared<ReportOptions>();
    subcommand = app.add_subcommand(
        "report", "Put node, plan, findings, profile and NCCL's choices on one page");
    subcommand
        ->add_option("--topology", given->topology,
                     "Report on a saved topology, not on this machine")
        ->type_name("FILE");
    subcommand
        ->add_option("--profile", given->profile,
                     "A profile's text; by default RDMA_TUNE_PROFILE or the job's")
        ->type_name("TEXT");
    subcommand
        ->add_option("--tasks", given->tasks, "Tasks on the node; by default one for each GPU")
        ->type_name("N")
        ->check(CLI::Range(1, 65536));
    subcommand
        ->add_option("--html", given->html,
                     "Write an HTML page that needs nothing else; - for standard output")
        ->type_name("FILE");
    subcommand->add_option("--config", given->config, "Instead of /etc/rdma-tune/rdma-tune.conf")
        ->type_name("FILE");
    subcommand->add_flag("--json", given->json, "Print JSON");
    return [given] { return run(*given); };
}

}  // namespace rdmatune::cli
