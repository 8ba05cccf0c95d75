// Plan's one text form.
#include <map>
#include <nlohmann/json.hpp>

#include "tuner/binding/plan.hpp"

namespace rdmatune {
namespace {

using Json = nlohmann::ordered_json;  // env is printed in the plan's order

Json labels(const Node& node, const std::vector<int>& hcas) {
    Json out = Json::array();
    for (const int hca : hcas) out.push_back(node.hcas[hca].label());
    return out;
}

Json gpuJson(const Gpu& gpu) {
    Json out;
    out["pci"] = gpu.pci ? Json(gpu.pci->str()) : Json(nullptr);
    out["index"] = gpu.index;
    out["uuid"] = gpu.uuid ? Json(*gpu.uuid) : Json(nullptr);
    return out;
}

/// Reads with the Node at hand; throws nlohmann's exceptions or std::string for a wrong value.
class Reader {
  public:
    explicit Reader(const Node& node) : node_(node) {
        for (std::size_t i = 0; i < node.hcas.size(); ++i)
            hca_of_label_[node.hcas[i].label()] = static_cast<int>(i);
    }

    [[nodiscard]] int gpu(const Json& json) const {
        const int index = json.get<int>();
        if (index < 0 || index >= static_cast<int>(node_.gpus.size()))
            throw "GPU index " + std::to_string(index) + " is not in the node";
        return index;
    }

    [[nodiscard]] std::vector<int> hcas(const Json& json) const {
        std::vector<int> out;
        for (const Json& entry : array(json)) {
            const auto label = entry.get<std::string>();
            const auto found = hca_of_label_.find(label);
            if (found == hca_of_label_.end()) throw "HCA " + label + " is not in the node";
            out.push_back(found->second);
        }
        return out;
    }

    [[nodiscard]] static const Json& array(const Json& json) {
        if (!json.is_array()) throw std::string("a list is expected, found ") + json.type_name();
        return json;
    }

    [[nodiscard]] static Distance distance(const Json& json) {
        const auto text = json.get<std::string>();
        if (text == toString(Distance::Unknown)) return Distance::Unknown;
        const auto distance = parseDistance(text);
        if (!distance) throw "distance " + text + " is none of PIX, PXB, PHB, NODE, SYS, ?";
        return *distance;
    }

    [[nodiscard]] RankPlan rank(const Json& json) const {
        RankPlan out;
        out.local_rank = json.at("local_rank").get<int>();
        for (const Json& entry : array(json.at("gpus"))) out.gpus.push_back(gpu(entry.at("index")));
        out.hcas = hcas(json.at("hcas"));
        out.distance = distance(json.at("distance"));
        const auto cpus = CpuSet::parse(json.at("cpus").get<std::string>());
        if (!cpus) throw "cpus " + json.at("cpus").dump() + " is no list of CPUs";
        out.cpus = *cpus;
        out.reason = json.at("reason").get<std::string>();
        return out;
    }

    [[nodiscard]] Plan plan(const Json& json) const {
        Plan out;
        for (const Json& entry : array(json.at("ranks"))) out.ranks.push_back(rank(entry));
        for (const Json& entry : array(json.at("pairs")))
            out.pairs.push_back(
                {gpu(entry.at("gpu")), hcas(entry.at("hcas")), distance(entry.at("distance"))});
        out.hcas = hcas(json.at("hcas"));
        for (const Json& entry : array(json.at("excluded")))
            out.excluded.push_back({entry.at("hca").get<std::string>(),
                                    entry.at("code").get<std::string>(),
                                    entry.at("reason").get<std::string>()});
        for (const auto& [name, value] : json.at("env").items())
            out.env.emplace_back(name, value.get<std::string>());
        for (const Json& entry : array(json.at("notes")))
            out.notes.push_back(entry.get<std::string>());
        return out;
    }

  private:
    const Node& node_;
    std::map<std::string, int> hca_of_label_;
};

}  // namespace

std::string planToJson(const Plan& plan, const Node& node, int indent) {
    Json out;
    out["ranks"] = Json::array();
    for (const RankPlan& rank : plan.ranks) {
        Json entry;
        entry["local_rank"] = rank.local_rank;
        entry["gpus"] = Json::array();
        for (const int gpu : rank.gpus) entry["gpus"].push_back(gpuJson(node.gpus[gpu]));
        entry["hcas"] = labels(node, rank.hcas);
        entry["distance"] = toString(rank.distance);
        entry["cpus"] = rank.cpus.str();
        entry["reason"] = rank.reason;
        out["ranks"].push_back(std::move(entry));
    }
    out["hcas"] = labels(node, plan.hcas);
    out["excluded"] = Json::array();
    for (const ExcludedHca& hca : plan.excluded)
        out["excluded"].push_back(
            Json{{"hca", hca.hca}, {"code", hca.code}, {"reason", hca.reason}});
    out["env"] = Json::object();
    for (const auto& [name, value] : plan.env) out["env"][name] = value;
    out["pairs"] = Json::array();
    for (const GpuPair& pair : plan.pairs)
        out["pairs"].push_back(Json{{"gpu", pair.gpu},
                                    {"hcas", labels(node, pair.hcas)},
                                    {"distance", toString(pair.distance)}});
    out["notes"] = plan.notes;
    return out.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Result<Plan> planFromJson(std::string_view json, const Node& node) {
    try {
        return Reader(node).plan(Json::parse(json));
    } catch (const nlohmann::json::exception& wrong) {
        return Error{std::string("this is not a plan's JSON: ") + wrong.what()};
    } catch (const std::string& wrong) {
        return Error{"this is not a plan's JSON for this node: " + wrong};
    }
}

}  // namespace rdmatune
