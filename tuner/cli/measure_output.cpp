#include "tuner/cli/measure_output.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace rdmatune::cli {
namespace {

using Json = nlohmann::ordered_json;

const char* transportName(ProfileTransport transport) {
    switch (transport) {
        case ProfileTransport::InfiniBand:
            return "InfiniBand";
        case ProfileTransport::Roce:
            return "RoCE";
        case ProfileTransport::Tcp:
            break;
    }
    return "TCP";
}

const char* gdrName(ProfileGdr gdr) {
    switch (gdr) {
        case ProfileGdr::No:
            return "no";
        case ProfileGdr::Dmabuf:
            return "dmabuf";
        case ProfileGdr::Peermem:
            return "peermem";
        case ProfileGdr::NotTried:
            break;
    }
    return "not tried";
}

const char* patternName(fabric::Pattern pattern) {
    switch (pattern) {
        case fabric::Pattern::Tree0:
            return "tree0";
        case fabric::Pattern::Tree1:
            return "tree1";
        case fabric::Pattern::Ring:
            break;
    }
    return "ring";
}

Json figures(const PatternFigures& f) {
    return {{"alpha_us", f.alpha_ns / 1e3},
            {"alpha_worst_us", f.alpha_worst_ns / 1e3},
            {"beta_gbs", f.beta_mbps / 1e3},
            {"beta_worst_gbs", f.beta_worst_mbps / 1e3}};
}

void addLatency(Json& out, const std::optional<fabric::Latency>& latency) {
    if (!latency) return;
    out["latency_min_us"] = latency->min_us;
    out["latency_median_us"] = latency->median_us;
    out["latency_p99_us"] = latency->p99_us;
    out["latency_samples"] = latency->samples;
}

Json edgeJson(const fabric::EdgeResult& result, const std::vector<std::string>& hosts) {
    const auto host = [&](int position) { return hosts[static_cast<std::size_t>(position)]; };
    Json out{{"pattern", patternName(result.edge.pattern)},
             {"from", host(result.down ? result.edge.to : result.edge.from)},
             {"to", host(result.down ? result.edge.from : result.edge.to)}};
    addLatency(out, result.latency);
    if (result.gbs > 0) out["gbs"] = result.gbs;
    if (result.rail_gbs > 0) out["one_rail_gbs"] = result.rail_gbs;
    if (result.rails.size() > 1) out["rails_gbs"] = result.rails;
    if (!result.error.empty()) out["error"] = result.error;
    return out;
}

Json verdictJson(const fabric::Verdict& verdict, const std::vector<std::string>& hosts) {
    Json out{{"kind", verdict.kind == fabric::Verdict::Kind::Node ? "node" : "link"},
             {"node", hosts[static_cast<std::size_t>(verdict.node)]},
             {"by", verdict.by_latency ? "latency_us" : "bandwidth_gbs"},
             {"figure", verdict.figure},
             {"others", verdict.others},
             {"partners", verdict.partners},
             {"text", fabric::describe(verdict, hosts)}};
    if (verdict.other >= 0) out["other"] = hosts[static_cast<std::size_t>(verdict.other)];
    return out;
}

std::string line(const char* name, const PatternFigures& f) {
    char text[200];
    std::snprintf(text, sizeof text,
                  "%s  alpha %.1f us (worst edge %.1f us), beta %.2f GB/s (worst %.2f GB/s)", name,
                  f.alpha_ns / 1e3, f.alpha_worst_ns / 1e3, f.beta_mbps / 1e3,
                  f.beta_worst_mbps / 1e3);
    return text;
}

}  // namespace

std::string measurementToJson(const fabric::Outcome& outcome, double seconds,
                              const std::string& profile_text) {
    std::vector<std::string> hosts;
    for (const fabric::Hello& hello : outcome.members) hosts.push_back(hello.host);
    const FabricProfile& profile = outcome.profile;
    Json out{{"usable", outcome.usable}};
    if (!outcome.reason.empty()) out["reason"] = outcome.reason;
    if (outcome.usable) {
        out["profile"] = profile_text;
        out["agreement"] = outcome.agreement.str();
    }
    out["nodes"] = profile.nodes;
    out["nodes_measured"] = profile.nodes_measured;
    out["complete"] = profile.complete;
    out["transport"] = transportName(profile.transport);
    out["gpu_memory"] = gdrName(profile.gdr);
    out["rails"] = profile.rails;
    out["rail"] = outcome.rail;
    out["one_rail_gbs"] = profile.rail_mbps / 1e3;
    out["one_rail_nominal_gbs"] = profile.rail_nominal_mbps / 1e3;
    out["ring"] = figures(profile.ring);
    out["tree"] = figures(profile.tree);
    out["slow_node"] =
        profile.slow_node[0] == '\0' ? Json(nullptr) : Json(std::string(profile.slow_node));
    for (const char* key : {"slow", "members", "edges", "retests", "collectives", "notes"})
        out[key] = Json::array();
    for (const fabric::Verdict& verdict : outcome.verdicts)
        out["slow"].push_back(verdictJson(verdict, hosts));
    for (const fabric::SlowRail& slow : outcome.slow_rails) {
        Json one{{"kind", "rail"},
                 {"rail", slow.rail},
                 {"node", hosts[static_cast<std::size_t>(slow.node)]},
                 {"by", "bandwidth_gbs"},
                 {"figure", slow.gbs},
                 {"others", slow.others},
                 {"text", fabric::describe(slow, outcome.members, outcome.agreement)}};
        if (slow.other >= 0) one["other"] = hosts[static_cast<std::size_t>(slow.other)];
        out["slow"].push_back(std::move(one));
    }
    for (const fabric::Hello& hello : outcome.members) {
        Json member{{"host", hello.host},
                    {"version", hello.version},
                    {"gpus", hello.facts.gpus},
                    {"hcas", Json::array()}};
        if (!hello.leaf.empty()) member["leaf"] = hello.leaf;
        for (const fabric::HcaFact& hca : hello.facts.hcas)
            member["hcas"].push_back({{"name", hca.label},
                                      {"link_layer", hca.layer},
                                      {"subnet", hca.subnet},
                                      {"rate_gbps", hca.rate_gbps}});
        out["members"].push_back(std::move(member));
    }
    for (const fabric::EdgeResult& edge : outcome.edges)
        out["edges"].push_back(edgeJson(edge, hosts));
    for (const fabric::PairResult& pair : outcome.retests) {
        Json test{{"from", hosts[static_cast<std::size_t>(pair.from)]},
                  {"to", hosts[static_cast<std::size_t>(pair.to)]}};
        addLatency(test, pair.latency);
        if (pair.gbs > 0) test["gbs"] = pair.gbs;
        if (!pair.error.empty()) test["error"] = pair.error;
        out["retests"].push_back(std::move(test));
    }
    for (const fabric::NodeCollective& one : outcome.collectives)
        if (one.position >= 0)
            out["collectives"].push_back({{"node", hosts[static_cast<std::size_t>(one.position)]},
                                          {"bytes", one.time.bytes},
                                          {"ring_us", one.time.ring_us},
                                          {"tree_us", one.time.tree_us},
                                          {"runs", one.time.runs}});
    for (const std::string& note : outcome.notes) out["notes"].push_back(note);
    Json& time = out["time_s"] = Json::object();
    for (const fabric::PhaseTime& phase : outcome.phases) time[phase.name] = phase.seconds;
    time["total"] = seconds;
    return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string profileToText(const FabricProfile& profile) {
    char text[256];
    std::snprintf(text, sizeof text,
                  "%u nodes (%u measured) over %s, %u rail%s, one rail %.2f GB/s", profile.nodes,
                  profile.nodes_measured, transportName(profile.transport), profile.rails,
                  profile.rails == 1 ? "" : "s", profile.rail_mbps / 1e3);
    return text;
}

std::vector<std::string> measurementToText(const fabric::Outcome& outcome, double seconds) {
    std::vector<std::string> out;
    if (outcome.usable) {
        out.push_back(profileToText(outcome.profile) +
                      (outcome.rail.empty() ? "" : " (" + outcome.rail + ")"));
        out.push_back(line("ring", outcome.profile.ring));
        out.push_back(line("tree", outcome.profile.tree));
    }
    // One line for each size: the slowest node's time is the collective's.
    std::map<std::size_t, fabric::CollectiveTime> slowest;
    for (const fabric::NodeCollective& one : outcome.collectives) {
        fabric::CollectiveTime& known = slowest[one.time.bytes];
        known.ring_us = std::max(known.ring_us, one.time.ring_us);
        known.tree_us = std::max(known.tree_us, one.time.tree_us);
    }
    char text[200];
    for (const auto& [bytes, time] : slowest) {
        std::snprintf(text, sizeof text, "allreduce of %zu bytes: ring %.1f us, tree %.1f us",
                      bytes, time.ring_us, time.tree_us);
        out.emplace_back(text);
    }
    std::string where;
    for (const fabric::PhaseTime& phase : outcome.phases) {
        std::snprintf(text, sizeof text, "%s%s %.2f", where.empty() ? "" : ", ", phase.name.c_str(),
                      phase.seconds);
        where += text;
    }
    std::snprintf(text, sizeof text, "took %.2f s (%s)", seconds, where.c_str());
    out.emplace_back(text);
    return out;
}

}  // namespace rdmatune::cli
