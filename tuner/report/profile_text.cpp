#include "tuner/report/profile_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tuner/config/rule_text.hpp"

namespace rdmatune {
namespace {

const char* transportName(ProfileTransport transport) {
    switch (transport) {
        case ProfileTransport::Tcp:
            return "TCP";
        case ProfileTransport::InfiniBand:
            return "InfiniBand";
        case ProfileTransport::Roce:
            return "RoCE";
    }
    return "unknown";
}

const char* gdrName(ProfileGdr gdr) {
    switch (gdr) {
        case ProfileGdr::NotTried:
            return "not tried";
        case ProfileGdr::No:
            return "not reached";
        case ProfileGdr::Dmabuf:
            return "by DMA-BUF";
        case ProfileGdr::Peermem:
            return "by nvidia_peermem";
    }
    return "unknown";
}

std::string latency(std::uint32_t ns) {
    return ns == 0 ? "not measured" : fmt::format("{:.2f} us", ns / 1e3);
}

std::string bandwidth(std::uint32_t mbps) {
    return mbps == 0 ? "not measured" : fmt::format("{:.2f} GB/s", mbps / 1e3);
}

std::string pattern(const PatternFigures& f) {
    return fmt::format("alpha {} (worst edge {}), beta {} per node (worst edge {})",
                       latency(f.alpha_ns), latency(f.alpha_worst_ns), bandwidth(f.beta_mbps),
                       bandwidth(f.beta_worst_mbps));
}

nlohmann::ordered_json number(std::uint32_t value, double unit) {
    if (value == 0) return nullptr;
    return value / unit;
}

nlohmann::ordered_json patternJson(const PatternFigures& f) {
    return {{"alpha_us", number(f.alpha_ns, 1e3)},
            {"alpha_worst_us", number(f.alpha_worst_ns, 1e3)},
            {"beta_gbs", number(f.beta_mbps, 1e3)},
            {"beta_worst_gbs", number(f.beta_worst_mbps, 1e3)}};
}

}  // namespace

std::vector<std::string> describeProfile(const FabricProfile& p) {
    std::vector<std::string> lines;
    lines.push_back(fmt::format("nodes      {}, of which {} were measured{}", p.nodes,
                                p.nodes_measured,
                                p.complete ? "" : "; cut short by the time budget"));
    lines.push_back(
        fmt::format("network    {}, GPU memory {}", transportName(p.transport), gdrName(p.gdr)));
    lines.push_back(fmt::format(
        "rails      {} per node; one alone {}; its link rate {}", p.rails, bandwidth(p.rail_mbps),
        p.rail_nominal_mbps == 0 ? "not known" : bandwidth(p.rail_nominal_mbps)));
    lines.push_back("ring       " + pattern(p.ring));
    lines.push_back("tree       " + pattern(p.tree));
    lines.push_back("slow node  " +
                    (p.slow_node[0] == '\0' ? std::string("none") : std::string(p.slow_node)));
    if (p.rules[0] == '\0') {
        lines.emplace_back("rules      none");
    } else {
        const char* label = "rules      ";
        for (const std::string& rule : describeRules(p.rules)) {
            lines.push_back(label + rule);
            label = "           ";
        }
    }
    if (p.neutral) lines.emplace_back("neutral    changes no choice of NCCL's");
    return lines;
}

std::string profileToJson(const FabricProfile& p, int indent) {
    nlohmann::ordered_json rules = nlohmann::ordered_json::array();
    if (p.rules[0] != '\0')
        for (const std::string& rule : describeRules(p.rules)) rules.push_back(rule);
    nlohmann::ordered_json slow = nullptr;
    if (p.slow_node[0] != '\0') slow = p.slow_node;
    const nlohmann::ordered_json out = {{"version", 1},
                                        {"nodes", p.nodes},
                                        {"nodes_measured", p.nodes_measured},
                                        {"complete", p.complete},
                                        {"neutral", p.neutral},
                                        {"network", transportName(p.transport)},
                                        {"gpu_memory", gdrName(p.gdr)},
                                        {"rails", p.rails},
                                        {"rail_gbs", number(p.rail_mbps, 1e3)},
                                        {"rail_nominal_gbs", number(p.rail_nominal_mbps, 1e3)},
                                        {"ring", patternJson(p.ring)},
                                        {"tree", patternJson(p.tree)},
                                        {"slow_node", slow},
                                        {"rules", rules}};
    return out.dump(indent);
}

}  // namespace rdmatune
