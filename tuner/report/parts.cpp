// What text and HTML say alike.
#include <fmt/format.h>

#include <algorithm>

#include "tuner/report/system_report.hpp"

namespace rdmatune {
namespace {

std::string microseconds(std::uint32_t ns) {
    return fmt::format("{:.2f} us", ns / 1000.0);
}
std::string gigabytes(std::uint32_t mbps) {
    return fmt::format("{:.2f} GB/s", mbps / 1000.0);
}

const char* transportName(ProfileTransport transport) {
    switch (transport) {
        case ProfileTransport::Tcp:
            return "TCP";
        case ProfileTransport::InfiniBand:
            return "InfiniBand verbs";
        case ProfileTransport::Roce:
            return "RoCE verbs";
    }
    return "?";
}

const char* gdrName(ProfileGdr gdr) {
    switch (gdr) {
        case ProfileGdr::NotTried:
            return "not tried: host memory was measured";
        case ProfileGdr::No:
            return "no: host memory was measured";
        case ProfileGdr::Dmabuf:
            return "yes, by DMA-BUF";
        case ProfileGdr::Peermem:
            return "yes, by peermem";
    }
    return "?";
}

void addPattern(std::vector<ProfileRow>& rows, const std::string& name,
                const PatternFigures& figures) {
    if (figures.alpha_ns > 0)
        rows.push_back({name + ": alpha", microseconds(figures.alpha_ns),
                        figures.alpha_worst_ns > 0
                            ? "worst edge " + microseconds(figures.alpha_worst_ns)
                            : ""});
    if (figures.beta_mbps > 0)
        rows.push_back({name + ": beta", gigabytes(figures.beta_mbps),
                        figures.beta_worst_mbps > 0
                            ? "worst edge " + gigabytes(figures.beta_worst_mbps)
                            : ""});
}

}  // namespace

std::vector<ProfileRow> profileRows(const FabricProfile& profile) {
    std::vector<ProfileRow> rows;
    rows.push_back({"nodes", std::to_string(profile.nodes),
                    profile.nodes_measured < profile.nodes
                        ? fmt::format("{} measured", profile.nodes_measured)
                        : ""});
    rows.push_back({"transport", transportName(profile.transport), ""});
    rows.push_back({"GPU memory reached", gdrName(profile.gdr), ""});
    rows.push_back({"rails", std::to_string(profile.rails),
                    profile.rail_mbps > 0
                        ? fmt::format("one alone {}{}", gigabytes(profile.rail_mbps),
                                      profile.rail_nominal_mbps > 0
                                          ? " of " + gigabytes(profile.rail_nominal_mbps)
                                          : "")
                        : ""});
    addPattern(rows, "ring", profile.ring);
    addPattern(rows, "tree", profile.tree);
    if (!profile.complete)
        rows.push_back({"complete", "no", "the time budget ended the measurement"});
    if (profile.neutral) rows.push_back({"neutral", "yes", "changes no choice of NCCL's"});
    if (profile.slow_node[0] != '\0')
        rows.push_back({"slow node", profile.slow_node, "far from the others"});
    if (profile.rules[0] != '\0') rows.push_back({"site's rules", profile.rules, ""});
    return rows;
}

std::string sizeName(std::uint64_t bytes) {
    constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits)) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{} {}", bytes, kUnits[unit]);
}

std::string escapeHtml(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
        }
    }
    return out;
}

std::string verdictOf(const Diagnosis& diagnosis) {
    const auto errors = std::ranges::count(diagnosis.findings, Severity::Error, &Finding::severity);
    const auto warnings =
        std::ranges::count(diagnosis.findings, Severity::Warning, &Finding::severity);
    const auto named = [](auto count, const char* what) {
        return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    if (errors > 0 && warnings > 0)
        return named(errors, "error") + ", " + named(warnings, "warning");
    if (errors > 0) return named(errors, "error");
    if (warnings > 0) return named(warnings, "warning");
    return "healthy";
}

}  // namespace rdmatune
