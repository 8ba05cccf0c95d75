#include <nlohmann/json.hpp>

#include "tuner/report/system_report.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune {
namespace {

using Json = nlohmann::ordered_json;

Json patternJson(const PatternFigures& figures) {
    return {{"alpha_ns", figures.alpha_ns},
            {"alpha_worst_ns", figures.alpha_worst_ns},
            {"beta_mbps", figures.beta_mbps},
            {"beta_worst_mbps", figures.beta_worst_mbps}};
}

Json profileJson(const SystemReport& report) {
    if (!report.profile) return nullptr;
    const FabricProfile& profile = *report.profile;
    char text[kProfileTextMax];
    Json out;
    out["text"] = formatProfile(profile, text, sizeof text) > 0 ? text : "";
    out["nodes"] = profile.nodes;
    out["nodes_measured"] = profile.nodes_measured;
    out["rails"] = profile.rails;
    out["rail_mbps"] = profile.rail_mbps;
    out["rail_nominal_mbps"] = profile.rail_nominal_mbps;
    out["ring"] = patternJson(profile.ring);
    out["tree"] = patternJson(profile.tree);
    out["complete"] = profile.complete;
    out["neutral"] = profile.neutral;
    out["slow_node"] = profile.slow_node;
    return out;
}

}  // namespace

std::string systemReportJson(const SystemReport& report, int indent) {
    Json out;
    out["version"] = report.version;
    out["made"] = report.made;
    out["verdict"] = verdictOf(report.diagnosis);
    out["node"] = Json::parse(nodeToJson(report.node));
    out["plan"] = Json::parse(planToJson(report.plan, report.node));
    out["diagnosis"] = Json::parse(diagnosisToJson(report.diagnosis, report.node));
    out["profile"] = profileJson(report);
    if (!report.profile_problem.empty()) out["profile_problem"] = report.profile_problem;
    out["ranks"] = report.ranks;
    out["choices"] = Json::array();
    for (const ChoiceRow& row : report.choices)
        out["choices"].push_back({{"bytes", row.bytes},
                                  {"nccl_alone", row.alone},
                                  {"with_profile", row.tuned},
                                  {"tree_us", row.tree_us},
                                  {"ring_us", row.ring_us}});
    return out.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rdmatune
