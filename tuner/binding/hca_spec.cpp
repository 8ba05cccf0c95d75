#include "tuner/binding/hca_spec.hpp"

#include <algorithm>
#include <set>

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {

bool nameMatches(const HcaSpec& spec, const HcaSpec::Entry& entry, const Hca& hca) {
    return spec.exact ? hca.name == entry.name : hca.name.starts_with(entry.name);
}

bool matches(const HcaSpec& spec, const HcaSpec::Entry& entry, const Hca& hca) {
    return nameMatches(spec, entry, hca) && (!entry.port || *entry.port == hca.port);
}

std::string asWritten(const HcaSpec::Entry& entry) {
    return entry.port ? entry.name + ":" + std::to_string(*entry.port) : entry.name;
}

HcaSpec::Entry readEntry(std::string_view text, std::vector<std::string>& problems) {
    HcaSpec::Entry out;
    const auto fields = split(text, ':');
    out.name = std::string(fields.front());
    if (out.name.starts_with('=') || out.name.starts_with('^'))
        problems.push_back("NCCL_IB_HCA: " + out.name +
                           " is looked up with its first character, which only means something "
                           "once, at the start of the value.");
    std::optional<int>* const targets[] = {&out.port, &out.rail, &out.plane};
    for (std::size_t i = 1; i < fields.size(); ++i) {
        const auto number = parseInt<int>(fields[i]);
        if (i > 3 || !number || *number < 0)
            problems.push_back("NCCL_IB_HCA: \"" + std::string(text) +
                               "\" is not NAME, NAME:PORT or NAME:PORT:RAIL:PLANE.");
        else
            *targets[i - 1] = *number;
    }
    return out;
}

}  // namespace

HcaSpec HcaSpec::parse(std::string_view text) {
    HcaSpec out;
    text = trim(text);
    if (text.starts_with('^')) {
        out.exclude = true;
        text.remove_prefix(1);
    }
    if (text.starts_with('=')) {
        out.exact = true;
        text.remove_prefix(1);
    }
    if (text.starts_with('=') || text.starts_with('^')) {
        out.problems.emplace_back(
            "NCCL_IB_HCA: one ^ and one = at the start are all that NCCL reads; the further ones "
            "are taken as part of the first name. They are ignored here.");
        while (text.starts_with('=') || text.starts_with('^')) text.remove_prefix(1);
    }
    for (const auto part : split(text, ','))
        if (!trim(part).empty()) out.entries.push_back(readEntry(trim(part), out.problems));
    return out;
}

std::vector<int> HcaSpec::select(const Node& node) const {
    std::vector<int> out;
    for (std::size_t i = 0; i < node.hcas.size(); ++i) {
        const bool listed = std::ranges::any_of(
            entries, [&](const Entry& entry) { return matches(*this, entry, node.hcas[i]); });
        if (entries.empty() || listed != exclude) out.push_back(static_cast<int>(i));
    }
    return out;
}

std::vector<std::string> HcaSpec::lint(const Node& node) const {
    auto out = problems;
    for (const Entry& entry : entries) {
        std::set<std::string> further;
        bool any = false;
        bool whole = false;
        for (const Hca& hca : node.hcas) {
            if (!matches(*this, entry, hca)) continue;
            any = true;
            if (hca.name == entry.name)
                whole = true;
            else
                further.insert(hca.name);
        }
        if (!any)
            out.push_back("NCCL_IB_HCA: " + asWritten(entry) + " matches no HCA of this node.");
        if (whole && !further.empty())
            out.push_back("NCCL_IB_HCA: " + entry.name + " without \"=\" also takes " +
                          join(further, ", ") + ", whose name begins alike; write " +
                          (exclude ? "^=" : "=") + asWritten(entry) + ".");
    }
    if (!node.hcas.empty() && select(node).empty())
        out.emplace_back("NCCL_IB_HCA leaves no HCA of this node: NCCL will use TCP or stop.");
    return out;
}

}  // namespace rdmatune
