#include <nlohmann/json.hpp>

#include "tuner/report/profile_text.hpp"
#include "tuner/report/system_report.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune {
namespace {
using Json = nlohmann::ordered_json;
}

std::string systemReportJson(const SystemReport& report, int indent) {
    Json out;
    out["version"] = report.version;
    out["made"] = report.made;
    out["verdict"] = verdictOf(report.diagnosis);
    out["node"] = Json::parse(nodeToJson(report.node));
    out["plan"] = Json::parse(planToJson(report.plan, report.node));
    out["diagnosis"] = Json::parse(diagnosisToJson(report.diagnosis, report.node));
    out["profile"] =
        report.profile ? Json::parse(profileToJson(*report.profile, -1)) : Json(nullptr);
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
