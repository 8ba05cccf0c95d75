#include <fmt/format.h>

#include "tuner/report/profile_text.hpp"
#include "tuner/report/system_report.hpp"
#include "tuner/topology/describe.hpp"

namespace rdmatune {
namespace {

std::string heading(const std::string& name) {
    return fmt::format("\n{}\n{:-<{}}\n", name, "", name.size());
}

std::string ratio(const ChoiceRow& row) {
    if (row.tree_us <= 0 || row.ring_us <= 0) return "";
    return row.tree_us <= row.ring_us ? fmt::format("tree {:.2f}x", row.ring_us / row.tree_us)
                                      : fmt::format("ring {:.2f}x", row.tree_us / row.ring_us);
}

std::string findingsText(const Diagnosis& diagnosis) {
    std::string out;
    for (const Finding& finding : diagnosis.findings) {
        out += fmt::format("{}: {}: {}\n", toString(finding.severity), finding.code, finding.what);
        if (!finding.user.empty()) out += "    you:   " + finding.user + "\n";
        if (!finding.admin.empty()) out += "    admin: " + finding.admin + "\n";
    }
    return out.empty() ? "nothing found\n" : out;
}

std::string profileText(const SystemReport& report) {
    if (!report.profile)
        return report.profile_problem.empty() ? "none given\n"
                                              : "not used: " + report.profile_problem + "\n";
    std::string out;
    for (const std::string& line : describeProfile(*report.profile)) out += line + "\n";
    return out;
}

std::string choicesText(const SystemReport& report) {
    std::string out = fmt::format("{:>9}  {:<14} {:<14} {:>12} {:>12}  {}\n", "bytes", "NCCL alone",
                                  "with profile", "tree us", "ring us", "faster by");
    for (const ChoiceRow& row : report.choices)
        out += fmt::format("{:>9}  {:<14} {:<14} {:>12.1f} {:>12.1f}  {}\n", sizeName(row.bytes),
                           row.alone, row.tuned, row.tree_us, row.ring_us, ratio(row));
    return out;
}

}  // namespace

std::string systemReportText(const SystemReport& report) {
    std::string out =
        fmt::format("rdma-tune {} report{}{}, {}\n", report.version,
                    report.node.hostname.empty() ? "" : " on ", report.node.hostname, report.made);
    out += verdictOf(report.diagnosis) + "\n";
    out += heading("Node") + describe(report.node);
    out += heading("Plan") + planToTable(report.plan, report.node) + "\n";
    for (const ExcludedHca& hca : report.plan.excluded)
        out += fmt::format("left out: {} ({}): {}\n", hca.hca, hca.code, hca.reason);
    for (const std::string& note : report.plan.notes) out += note + "\n";
    for (const auto& [name, value] : report.plan.env) out += fmt::format("{}={}\n", name, value);
    for (const auto& setting : report.diagnosis.env)
        out += fmt::format("{}={}  ({})\n", setting.name, setting.value, setting.reason);
    out += heading("Findings") + findingsText(report.diagnosis);
    out += heading("Fabric profile") + profileText(report);
    if (!report.choices.empty())
        out += heading(fmt::format("NCCL's choice for allreduce, {} nodes, {} ranks",
                                   report.profile ? report.profile->nodes : 0, report.ranks)) +
               choicesText(report);
    return out;
}

}  // namespace rdmatune
