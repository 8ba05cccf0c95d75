// What text and HTML say alike.
#include <fmt/format.h>

#include <algorithm>

#include "tuner/report/system_report.hpp"

namespace rdmatune {

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
    const bool judged = std::ranges::any_of(
        diagnosis.pairs, [](const GdrPair& pair) { return pair.way != GdrWay::Unknown; });
    return judged || diagnosis.pairs.empty() ? "healthy" : kNothingJudged;
}

}  // namespace rdmatune
