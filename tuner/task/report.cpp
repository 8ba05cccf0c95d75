#include "tuner/task/report.hpp"

#include <nlohmann/json.hpp>

#include "tuner/base/text.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
/// A task's environment and a report are far smaller; more is not ours.
constexpr std::size_t kMaxSection = 64U << 20;

Json requestToJson(const PlanRequest& request) {
    Json out;
    out["local_tasks"] = request.local_tasks;
    out["gpus"] = request.gpus ? Json(*request.gpus) : Json(nullptr);
    out["cpus"] = request.cpus ? Json(request.cpus->str()) : Json(nullptr);
    out["hca_include"] = request.hca_include;
    out["hca_exclude"] = request.hca_exclude;
    out["common_subnets"] = request.common_subnets;
    out["agreed"] = request.agreed ? Json(request.agreed->str()) : Json(nullptr);
    return out;
}

PlanRequest requestFromJson(const Json& json) {
    PlanRequest out;
    out.local_tasks = json.at("local_tasks").get<int>();
    if (!json.at("gpus").is_null()) out.gpus = json.at("gpus").get<std::vector<int>>();
    if (!json.at("cpus").is_null()) out.cpus = CpuSet::parse(json.at("cpus").get<std::string>());
    out.hca_include = json.at("hca_include").get<std::vector<std::string>>();
    out.hca_exclude = json.at("hca_exclude").get<std::vector<std::string>>();
    out.common_subnets = json.at("common_subnets").get<std::vector<std::string>>();
    if (!json.at("agreed").is_null())
        out.agreed = Agreement::parse(json.at("agreed").get<std::string>());
    return out;
}

}  // namespace

std::string reportToJson(const NodeReport& report) {
    Json out;
    out["version"] = kVersion;
    out["node"] = Json::parse(nodeToJson(report.node));
    out["request"] = requestToJson(report.request);
    out["plan"] = Json::parse(planToJson(report.plan, report.node));
    out["diagnosis"] = Json::parse(diagnosisToJson(report.diagnosis, report.node));
    out["tuner"] = report.tuner;
    return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<NodeReport> reportFromJson(std::string_view json) {
    try {
        const Json in = Json::parse(json);
        if (in.at("version").get<int>() != kVersion)
            return Error{"the node report has version " + in.at("version").dump() + ", expected " +
                         std::to_string(kVersion) +
                         ": the nodes run different releases of rdma-tune"};
        NodeReport out;
        auto node = nodeFromJson(in.at("node").dump(), "node report");
        if (!node) return node.error();
        out.node = std::move(*node);
        out.request = requestFromJson(in.at("request"));
        auto plan = planFromJson(in.at("plan").dump(), out.node);
        if (!plan) return within("node report", plan.error());
        out.plan = std::move(*plan);
        auto diagnosis = diagnosisFromJson(in.at("diagnosis").dump(), "node report");
        if (!diagnosis) return diagnosis.error();
        out.diagnosis = std::move(*diagnosis);
        out.tuner = in.at("tuner").get<std::string>();
        return out;
    } catch (const nlohmann::json::exception& wrong) {
        return Error{std::string("this is not a node report: ") + wrong.what()};
    }
}

Result<TaskInput> parseTaskInput(std::string_view bytes) {
    TaskInput out;
    for (;;) {
        const auto line_end = bytes.find('\n');
        if (line_end == std::string_view::npos)
            return Error{"standard input ends before \"end 0\": expected sections NAME LENGTH"};
        const auto words = split(bytes.substr(0, line_end), ' ');
        const auto length = words.size() == 2 ? parseInt<std::size_t>(words[1]) : std::nullopt;
        bytes.remove_prefix(line_end + 1);
        if (!length || *length > kMaxSection || *length > bytes.size())
            return Error{"standard input has a section header that is not NAME LENGTH, or is cut"};
        const auto body = bytes.substr(0, *length);
        bytes.remove_prefix(*length);
        if (words[0] == "end") return out;
        if (words[0] == "report") out.report = std::string(body);
        if (words[0] == "env")
            for (const auto entry : split(body, '\0'))
                if (!entry.empty()) out.env.emplace_back(entry);
        // Sections of a newer plugin are passed over.
    }
}

}  // namespace rdmatune
