// A Diagnosis as JSON, and back: it travels from the node's reader to every task.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "tuner/gpudirect/finding.hpp"

namespace rdmatune {
namespace {

using Json = nlohmann::ordered_json;

Severity severityOf(std::string_view text) {
    if (text == "error") return Severity::Error;
    return text == "warning" ? Severity::Warning : Severity::Info;
}

GdrWay wayOf(std::string_view text) {
    for (const GdrWay way : {GdrWay::No, GdrWay::Dmabuf, GdrWay::Peermem})
        if (text == toString(way)) return way;
    return GdrWay::Unknown;
}

}  // namespace

std::string diagnosisToJson(const Diagnosis& diagnosis, const Node& node, int indent) {
    Json out;
    out["findings"] = Json::array();
    for (const Finding& finding : diagnosis.findings)
        out["findings"].push_back({{"code", finding.code},
                                   {"severity", toString(finding.severity)},
                                   {"what", finding.what},
                                   {"user", finding.user},
                                   {"admin", finding.admin}});
    out["pairs"] = Json::array();
    for (const GdrPair& pair : diagnosis.pairs) {
        const auto g = static_cast<std::size_t>(pair.gpu);
        const auto h = static_cast<std::size_t>(pair.hca);
        Json row{{"gpu", pair.gpu}, {"gpu_pci", nullptr}, {"hca", ""}, {"hca_index", pair.hca}};
        if (g < node.gpus.size() && node.gpus[g].pci) row["gpu_pci"] = node.gpus[g].pci->str();
        if (h < node.hcas.size()) row["hca"] = node.hcas[h].label();
        row["distance"] = g < node.distance.size() && h < node.distance[g].size()
                              ? toString(node.distance[g][h])
                              : toString(Distance::Unknown);
        row["way"] = toString(pair.way);
        row["because"] = pair.because;
        out["pairs"].push_back(std::move(row));
    }
    out["env"] = Json::array();
    for (const auto& setting : diagnosis.env)
        out["env"].push_back(
            {{"name", setting.name}, {"value", setting.value}, {"reason", setting.reason}});
    return out.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Result<Diagnosis> diagnosisFromJson(std::string_view json, const std::string& name) {
    Diagnosis out;
    try {
        const Json in = Json::parse(json);
        for (const Json& row : in.at("findings"))
            out.findings.push_back({row.at("code"),
                                    severityOf(row.at("severity").get<std::string>()),
                                    row.at("what"), row.at("user"), row.at("admin")});
        for (const Json& row : in.at("pairs"))
            out.pairs.push_back({row.at("gpu"), row.at("hca_index"),
                                 wayOf(row.at("way").get<std::string>()), row.at("because")});
        for (const Json& row : in.at("env"))
            out.env.push_back({row.at("name"), row.at("value"), row.at("reason")});
    } catch (const Json::exception& wrong) {
        return Error{name +
                     ": not a diagnosis as `rdma-tune doctor --json` prints it: " + wrong.what()};
    }
    return out;
}

}  // namespace rdmatune
