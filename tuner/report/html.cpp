// The page. Everything that is not written here goes through escapeHtml().
#include <fmt/format.h>

#include <algorithm>

#include "tuner/base/text.hpp"
#include "tuner/report/profile_text.hpp"
#include "tuner/report/system_report.hpp"

namespace rdmatune {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#1c2330;--soft:#5c6675;--line:#d8dde5;--page:#fff;--card:#f6f8fa;
--good:#1a7f4b;--fair:#9a6700;--bad:#c0362c;--near:#d9f2e3;--mid:#fdf3d0;--far:#fbe2df}
@media(prefers-color-scheme:dark){:root{--ink:#dfe5ee;--soft:#98a3b3;--line:#343c49;--page:#12161c;--card:#1a2029;
--good:#57c98a;--fair:#d9a93c;--bad:#f0786d;--near:#173a28;--mid:#3d3414;--far:#44201d}}
body{margin:0 auto;max-width:62rem;padding:1.5rem 1rem 4rem;font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page)}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
p{margin:.4rem 0}.soft{color:var(--soft)}.wide{overflow-x:auto;margin:.6rem 0}
table{border-collapse:collapse;font-size:.92em}th,td{text-align:left;padding:.25rem .7rem;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}code,pre{font-family:ui-monospace,monospace;font-size:.9em}
td.near{background:var(--near)}td.mid{background:var(--mid)}td.far{background:var(--far)}
.badge{display:inline-block;padding:0 .5rem;border-radius:.7rem;color:var(--page);font-size:.85em;font-weight:600}
.error{background:var(--bad)}.warning{background:var(--fair)}.info{background:var(--soft)}.healthy{background:var(--good)}
.finding{background:var(--card);border-left:4px solid var(--line);padding:.5rem .8rem;margin:.5rem 0}
.finding.error{background:var(--card);border-color:var(--bad)}.finding.warning{background:var(--card);border-color:var(--fair)}.finding.info{background:var(--card)}
.finding p{margin:.15rem 0}.changed{font-weight:600}
h1{overflow-wrap:anywhere}.k{white-space:nowrap}td.why{min-width:18rem}pre{white-space:pre-wrap;overflow-wrap:anywhere}
.wide td:first-child,.wide th:first-child{position:sticky;left:0;background:var(--page)}.unknown{background:var(--soft)}
)";

std::string cell(std::string_view text, std::string_view kind = "") {
    return kind.empty() ? fmt::format("<td>{}</td>", escapeHtml(text))
                        : fmt::format("<td class=\"{}\">{}</td>", kind, escapeHtml(text));
}

/// A table whose head is fixed; rows are made of cells.
std::string table(std::initializer_list<const char*> head, const std::string& rows) {
    std::string out = "<div class=\"wide\"><table><thead><tr>";
    for (const char* name : head) {
        const bool number = *name == '#';  // a column of figures
        out += fmt::format("<th{}>{}</th>", number ? " class=\"n\"" : "",
                           escapeHtml(name + (number ? 1 : 0)));
    }
    return out + "</tr></thead><tbody>" + rows + "</tbody></table></div>\n";
}

std::string row(const std::string& cells) {
    return "<tr>" + cells + "</tr>\n";
}

std::string gpuLabel(const Node& node, int index) {
    const auto i = static_cast<std::size_t>(index);
    if (i >= node.gpus.size()) return std::to_string(index);
    return node.gpus[i].pci ? fmt::format("{} ({})", index, node.gpus[i].pci->str())
                            : std::to_string(index);
}

std::string hcaLabel(const Node& node, int index) {
    const auto i = static_cast<std::size_t>(index);
    return i < node.hcas.size() ? node.hcas[i].label() : std::to_string(index);
}

const char* nearness(Distance distance) {
    switch (distance) {
        case Distance::Pix:
        case Distance::Pxb:
            return "near";
        case Distance::Phb:
        case Distance::Node:
            return "mid";
        case Distance::Sys:
            return "far";
        case Distance::Unknown:
            return "";
    }
    return "";
}

std::string linkText(const PcieLink& link, double gbps = 0) {
    if (link.width == 0 || link.speed_gts <= 0)
        return gbps > 0 ? fmt::format("{:.0f} Gbit/s", gbps) : "";
    return fmt::format("x{} at {} GT/s", link.width, link.speed_gts);
}

/// A list that breaks behind its commas only.
std::string listCell(std::string_view list) {
    std::string out;
    for (const auto part : split(list, ','))
        out += fmt::format("{}<span class=\"k\">{}</span>", out.empty() ? "" : ", ",
                           escapeHtml(trim(part)));
    return "<td>" + out + "</td>";
}

std::string gpuTable(const Node& node) {
    std::string rows;
    for (const Gpu& gpu : node.gpus)
        rows +=
            row(cell(std::to_string(gpu.index), "n") + cell(gpu.pci ? gpu.pci->str() : "", "k") +
                cell(gpu.model.empty() ? gpu.vendor : gpu.model) +
                cell(gpu.numa >= 0 ? std::to_string(gpu.numa) : "", "n") +
                listCell(gpu.cpus.str()) + cell(linkText(gpu.link), "k"));
    return rows.empty() ? "" : table({"#GPU", "PCI", "model", "#NUMA", "CPUs", "PCIe"}, rows);
}

std::string nodeSection(const Node& node) {
    std::string out = fmt::format(
        "<h2>Node</h2><p class=\"soft\">{} GPUs, {} HCA ports, {} NUMA nodes, {} CPUs; read from: "
        "{}</p>\n",
        node.gpus.size(), node.hcas.size(), node.numa.size(), node.cpus.size(),
        escapeHtml(toString(node.source)));
    out += gpuTable(node);
    std::string rows;
    for (const Hca& hca : node.hcas)
        rows += row(cell(hca.label()) + cell(hca.pci ? hca.pci->str() : "") +
                    cell(toString(hca.link_layer)) + cell(toString(hca.state)) +
                    cell(hca.rate_gbps > 0 ? fmt::format("{:g}", hca.rate_gbps) : "", "n") +
                    cell(hca.numa >= 0 ? std::to_string(hca.numa) : "", "n") +
                    cell(linkText(hca.link, hca.pcie_gbps), "k"));
    if (!rows.empty())
        out += table({"HCA", "PCI", "link layer", "state", "#Gbit/s", "#NUMA", "PCIe"}, rows);
    if (node.gpus.empty() || node.hcas.empty()) return out;
    out +=
        "<p class=\"soft\">Distance of each GPU to each HCA; green: PCIe switches only, red: "
        "across sockets.</p>"
        "<div class=\"wide\"><table><thead><tr><th>GPU</th>";
    for (const Hca& hca : node.hcas) out += "<th>" + escapeHtml(hca.label()) + "</th>";
    out += "</tr></thead><tbody>\n";
    for (std::size_t g = 0; g < node.gpus.size(); ++g) {
        std::string cells = cell(gpuLabel(node, static_cast<int>(g)), "k");
        for (std::size_t h = 0; h < node.hcas.size(); ++h) {
            const Distance distance = g < node.distance.size() && h < node.distance[g].size()
                                          ? node.distance[g][h]
                                          : Distance::Unknown;
            cells += cell(toString(distance), nearness(distance));
        }
        out += row(cells);
    }
    out += "</tbody></table></div>\n";
    for (const std::string& note : node.notes) out += "<p>" + escapeHtml(note) + "</p>\n";
    return out;
}

std::string planSection(const SystemReport& report) {
    const Node& node = report.node;
    std::string rows;
    for (const RankPlan& rank : report.plan.ranks) {
        std::vector<std::string> gpus, hcas;
        for (const int gpu : rank.gpus) gpus.push_back(gpuLabel(node, gpu));
        for (const int hca : rank.hcas) hcas.push_back(hcaLabel(node, hca));
        rows +=
            row(cell(std::to_string(rank.local_rank), "n") + listCell(join(gpus, ",")) +
                listCell(join(hcas, ",")) + cell(toString(rank.distance), nearness(rank.distance)) +
                listCell(rank.cpus.str()) + cell(rank.reason, "why"));
    }
    std::string out =
        "<h2>Plan</h2>\n" + table({"#rank", "GPU", "HCA", "distance", "CPUs", "why"}, rows);
    for (const ExcludedHca& hca : report.plan.excluded)
        out += fmt::format("<p>Left out: <b>{}</b> ({}): {}</p>\n", escapeHtml(hca.hca),
                           escapeHtml(hca.code), escapeHtml(hca.reason));
    for (const std::string& note : report.plan.notes) out += "<p>" + escapeHtml(note) + "</p>\n";
    std::string env;
    for (const auto& [name, value] : report.plan.env) env += fmt::format("{}={}\n", name, value);
    for (const auto& setting : report.diagnosis.env)
        env += fmt::format("{}={}   # {}\n", setting.name, setting.value, setting.reason);
    if (!env.empty()) out += "<div class=\"wide\"><pre>" + escapeHtml(env) + "</pre></div>\n";
    return out;
}

std::string findingsSection(const SystemReport& report) {
    std::string out = "<h2>Findings</h2>\n";
    for (const Finding& finding : report.diagnosis.findings) {
        out += fmt::format(
            "<div class=\"finding {0}\"><p><span class=\"badge {0}\">{0}</span> "
            "<code>{1}</code></p>"
            "<p>{2}</p>",
            toString(finding.severity), escapeHtml(finding.code), escapeHtml(finding.what));
        if (!finding.user.empty()) out += "<p><b>You:</b> " + escapeHtml(finding.user) + "</p>";
        if (!finding.admin.empty())
            out += "<p><b>Administrator:</b> " + escapeHtml(finding.admin) + "</p>";
        out += "</div>\n";
    }
    if (report.diagnosis.findings.empty()) out += "<p>Nothing found.</p>\n";
    std::string rows;
    const auto& pairs = report.diagnosis.pairs;
    for (std::size_t i = 0; i < pairs.size();) {
        // HCAs of one GPU of which the same is true share a row: some GPUs have four and more.
        const GdrPair& pair = pairs[i];
        std::vector<std::string> hcas;
        for (; i < pairs.size() && pairs[i].gpu == pair.gpu && pairs[i].way == pair.way &&
               pairs[i].because == pair.because;
             ++i)
            hcas.push_back(hcaLabel(report.node, pairs[i].hca));
        const bool works = pair.way == GdrWay::Dmabuf || pair.way == GdrWay::Peermem;
        const char* shade = works ? "near" : pair.way == GdrWay::No ? "far" : "mid";
        rows += row(cell(gpuLabel(report.node, pair.gpu), "k") + listCell(join(hcas, ",")) +
                    cell(works ? fmt::format("yes, by {}", toString(pair.way))
                               : std::string(toString(pair.way)),
                         shade) +
                    cell(pair.because));
    }
    if (!rows.empty()) out += table({"GPU", "HCA", "GPUDirect RDMA", "because of"}, rows);
    return out;
}

std::string profileSection(const SystemReport& report) {
    std::string out = "<h2>Fabric profile</h2>\n";
    if (!report.profile)
        return out + "<p>" +
               (report.profile_problem.empty()
                    ? std::string("None given.")
                    : "Not used: " + escapeHtml(report.profile_problem)) +
               "</p>\n";
    return out + "<div class=\"wide\"><pre>" +
           escapeHtml(join(describeProfile(*report.profile), "\n")) + "</pre></div>\n";
}

std::string choicesSection(const SystemReport& report) {
    if (report.choices.empty()) return "";
    std::string rows;
    for (const ChoiceRow& entry : report.choices)
        rows += row(cell(sizeName(entry.bytes), "n") + cell(entry.alone) +
                    cell(entry.tuned, entry.alone == entry.tuned ? "" : "changed near") +
                    cell(fmt::format("{:.1f}", entry.tree_us), "n") +
                    cell(fmt::format("{:.1f}", entry.ring_us), "n"));
    return fmt::format(
               "<h2>NCCL's choice for allreduce</h2><p class=\"soft\">{} nodes, {} ranks; "
               "green: another choice than NCCL's own.</p>\n",
               report.profile ? report.profile->nodes : 0, report.ranks) +
           table({"#message", "NCCL alone", "with the profile", "#tree, us", "#ring, us"}, rows);
}

}  // namespace

std::string systemReportHtml(const SystemReport& report) {
    const std::string verdict = verdictOf(report.diagnosis);
    const bool errors = std::ranges::any_of(report.diagnosis.findings, [](const Finding& finding) {
        return finding.severity == Severity::Error;
    });
    const char* badge = errors                      ? "error"
                        : verdict == "healthy"      ? "healthy"
                        : verdict == kNothingJudged ? "unknown"
                                                    : "warning";
    const std::string host = report.node.hostname.empty() ? "a node" : report.node.hostname;
    return fmt::format(
               "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
               "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
               "<title>rdma-tune: {0}</title><style>{1}</style></head><body>\n"
               "<h1>{0} <span class=\"badge {2}\">{3}</span></h1>"
               "<p class=\"soft\">rdma-tune {4}, {5}</p>\n",
               escapeHtml(host), kStyle, badge, escapeHtml(verdict), escapeHtml(report.version),
               escapeHtml(report.made)) +
           findingsSection(report) + planSection(report) + nodeSection(report.node) +
           profileSection(report) + choicesSection(report) + "</body></html>\n";
}

}  // namespace rdmatune
