// hca_include and hca_exclude: what the site says about HCAs by name.
#include "tuner/base/text.hpp"
#include "tuner/binding/eligible.hpp"
#include "tuner/binding/rules.hpp"

namespace rdmatune {
namespace {

bool isDevice(std::string_view text, const Hca& hca) {
    if (text == hca.name) return true;
    const auto address = PciAddress::parse(text);
    return address && hca.pci == address;
}

bool anyNames(const std::vector<std::string>& entries, const Hca& hca) {
    for (const auto& entry : entries)
        if (namesHca(entry, hca)) return true;
    return false;
}

/// A name that no HCA has: likely a typing mistake, or another node's name.
void noteUnmatched(const Node& node, const std::vector<std::string>& entries, std::string_view key,
                   std::vector<std::string>& notes) {
    for (const auto& entry : entries) {
        bool matched = false;
        for (const Hca& hca : node.hcas) matched = matched || namesHca(entry, hca);
        if (!matched)
            notes.push_back(std::string(key) + " names " + entry +
                            ", which is no HCA of this node.");
    }
}

}  // namespace

bool namesHca(std::string_view entry, const Hca& hca) {
    entry = trim(entry);
    if (isDevice(entry, hca)) return true;
    const auto colon = entry.rfind(':');
    if (colon == std::string_view::npos) return false;
    const auto port = parseInt<int>(entry.substr(colon + 1));
    return port && *port == hca.port && isDevice(entry.substr(0, colon), hca);
}

Status applySiteNames(const Node& node, const PlanRequest& request, Eligibility& out) {
    noteUnmatched(node, request.hca_include, "hca_include", out.notes);
    noteUnmatched(node, request.hca_exclude, "hca_exclude", out.notes);
    bool any_left = false;
    for (std::size_t i = 0; i < node.hcas.size(); ++i) {
        const Hca& hca = node.hcas[i];
        if (anyNames(request.hca_exclude, hca))
            out.verdicts[i] = {"site", "The site leaves it out (hca_exclude)."};
        else if (!request.hca_include.empty() && !anyNames(request.hca_include, hca))
            out.verdicts[i] = {"site", "The site names other HCAs (hca_include)."};
        else
            any_left = true;
    }
    if (request.hca_include.empty() || any_left || node.hcas.empty()) return Done{};
    std::vector<std::string> labels;
    for (const Hca& hca : node.hcas) labels.push_back(hca.label());
    return Error{"hca_include = " + join(request.hca_include, ",") + " leaves no HCA" +
                 (node.hostname.empty() ? std::string{} : " on node " + node.hostname) +
                 ", which has " + join(labels, ", ") + ": correct the names in rdma-tune.conf"};
}

bool includedBySite(const PlanRequest& request, const Hca& hca) {
    return anyNames(request.hca_include, hca);
}

}  // namespace rdmatune
