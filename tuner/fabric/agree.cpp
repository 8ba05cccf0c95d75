#include "tuner/fabric/agree.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "tuner/base/text.hpp"

namespace rdmatune::fabric {
namespace {

using Groups = std::map<std::string, std::vector<std::string>>;  ///< value -> hosts

Groups group(const std::vector<Hello>& hellos,
             const std::function<std::string(const Hello&)>& value) {
    Groups out;
    for (const Hello& hello : hellos) out[value(hello)].push_back(hello.host);
    return out;
}

/// One sentence when the nodes differ: what most have, then each group of the others.
void noteDifference(const Groups& groups, const std::string& what,
                    std::vector<std::string>& notes) {
    if (groups.size() < 2) return;
    const auto most = std::max_element(
        groups.begin(), groups.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    std::string text = "the nodes differ in their " + what + ": ";
    const bool majority = most->second.size() > 1;
    bool first = true;
    for (const auto& [value, hosts] : groups) {
        if (majority && value == most->first) continue;
        text +=
            (first ? "" : ", ") + nameNodes(hosts) + ": " + (value.empty() ? "not known" : value);
        first = false;
    }
    if (majority) text += ", the others: " + (most->first.empty() ? "not known" : most->first);
    notes.push_back(text);
}

std::vector<HcaFact> ofLayer(const Hello& hello, LinkLayer layer) {
    std::vector<HcaFact> out;
    for (const HcaFact& hca : hello.facts.hcas)
        if (hca.layer == toString(layer)) out.push_back(hca);
    return out;
}

std::size_t fewest(const std::vector<Hello>& hellos, LinkLayer layer) {
    std::size_t least = hellos.empty() ? 0 : SIZE_MAX;
    for (const Hello& hello : hellos) least = std::min(least, ofLayer(hello, layer).size());
    return least;
}

/// Subnets that every node has, each with as many ports as the node with the fewest has there.
/// Empty when a port's subnet is not known.
std::map<std::string, std::size_t> commonSubnets(const std::vector<Hello>& hellos,
                                                 LinkLayer layer) {
    std::map<std::string, std::size_t> common;
    bool first = true;
    for (const Hello& hello : hellos) {
        std::map<std::string, std::size_t> own;
        for (const HcaFact& hca : ofLayer(hello, layer)) {
            if (hca.subnet.empty()) return {};
            ++own[hca.subnet];
        }
        if (first) {
            common = own;
            first = false;
            continue;
        }
        for (auto at = common.begin(); at != common.end();) {
            const auto here = own.find(at->first);
            if (here == own.end()) {
                at = common.erase(at);
                continue;
            }
            at->second = std::min(at->second, here->second);
            ++at;
        }
    }
    return common;
}

void agreeOnRails(const std::vector<Hello>& hellos, Agreement& out) {
    out.rails = static_cast<int>(fewest(hellos, out.link_layer));
    if (out.rails == 0) return;
    const auto common = commonSubnets(hellos, out.link_layer);
    if (common.empty()) return;  // not known, or each node has its own: a router may lead there
    const bool one_each =
        std::all_of(common.begin(), common.end(), [](const auto& s) { return s.second == 1; });
    if (common.size() > 1 && one_each) {
        out.rails = static_cast<int>(common.size());
        out.rails_by_subnet = true;
        // In the first node's order: all nodes then count the rails alike.
        for (const HcaFact& hca : ofLayer(hellos.front(), out.link_layer))
            if (common.contains(hca.subnet)) out.subnets.push_back(hca.subnet);
        return;
    }
    if (common.size() == 1) {
        out.rails = static_cast<int>(common.begin()->second);
        out.subnets.assign(static_cast<std::size_t>(out.rails), common.begin()->first);
        out.rails_cross = out.rails > 1;
    }
}

}  // namespace

std::string nameNodes(const std::vector<std::string>& hosts) {
    constexpr std::size_t kNamed = 4;
    std::string out;
    for (std::size_t i = 0; i < std::min(hosts.size(), kNamed); ++i)
        out += (i == 0 ? "" : ", ") + hosts[i];
    if (hosts.size() > kNamed) out += " and " + std::to_string(hosts.size() - kNamed) + " more";
    return out;
}

Agreed agree(const std::vector<Hello>& hellos) {
    Agreed out;
    noteDifference(group(hellos, [](const Hello& h) { return h.version; }), "version of rdma-tune",
                   out.notes);
    noteDifference(group(hellos, [](const Hello& h) { return std::to_string(h.facts.gpus); }),
                   "number of GPUs", out.notes);
    noteDifference(
        group(hellos, [](const Hello& h) { return std::to_string(h.facts.hcas.size()); }),
        "number of usable HCAs", out.notes);
    noteDifference(group(hellos,
                         [](const Hello& h) {
                             std::set<std::string> layers;
                             for (const HcaFact& hca : h.facts.hcas) layers.insert(hca.layer);
                             return layers.empty() ? std::string("no HCA") : join(layers, " and ");
                         }),
                   "link layer", out.notes);
    Groups unread;
    for (const Hello& hello : hellos)
        if (!hello.facts.error.empty()) unread[hello.facts.error].push_back(hello.host);
    for (const auto& [why, hosts] : unread) {
        const std::string text = nameNodes(hosts) + ": " + why;
        if (why == kNoPlugin)
            out.refusal = text;
        else
            out.notes.push_back(text);
    }

    const std::size_t infiniband = fewest(hellos, LinkLayer::InfiniBand);
    const std::size_t ethernet = fewest(hellos, LinkLayer::Ethernet);
    Agreement& agreement = out.agreement;
    if (infiniband == 0 && ethernet == 0) {
        const bool some = std::any_of(hellos.begin(), hellos.end(),
                                      [](const Hello& h) { return !h.facts.hcas.empty(); });
        if (some)
            out.notes.emplace_back("no kind of HCA is usable on every node, so TCP is measured");
        return out;
    }
    agreement.link_layer = infiniband >= ethernet ? LinkLayer::InfiniBand : LinkLayer::Ethernet;
    agreeOnRails(hellos, agreement);
    Groups subnets = group(hellos, [&](const Hello& h) {
        std::set<std::string> own;
        for (const HcaFact& hca : ofLayer(h, agreement.link_layer)) own.insert(hca.subnet);
        return join(own, " ");
    });
    if (!agreement.rails_by_subnet || subnets.size() > 1)
        noteDifference(subnets, "rails' subnets", out.notes);
    return out;
}

}  // namespace rdmatune::fabric
