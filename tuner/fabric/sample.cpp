#include "tuner/fabric/sample.hpp"

#include <algorithm>
#include <map>

#include "tuner/base/text.hpp"
#include "tuner/fabric/hostlist.hpp"

namespace rdmatune::fabric {
namespace {

/// Host -> leaf switch, from lines such as
/// "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[01-16]".
std::map<std::string, std::string> leavesOf(std::string_view topology) {
    std::map<std::string, std::string> out;
    for (const std::string_view line : split(topology, '\n')) {
        std::string name;
        std::string_view nodes;
        bool leaf = false;
        for (const std::string_view word : split(line, ' ')) {
            if (word.starts_with("SwitchName=")) name = word.substr(11);
            if (word == "Level=0") leaf = true;
            if (word.starts_with("Nodes=")) nodes = word.substr(6);
        }
        if (!leaf || name.empty()) continue;
        const auto hosts = expandHosts(nodes);
        if (!hosts) continue;
        for (const std::string& host : *hosts) out[host] = name;
    }
    return out;
}

}  // namespace

Sample sampleHosts(const std::vector<std::string>& hosts, std::string_view topology, int most) {
    const auto limit = static_cast<std::size_t>(std::max(most, 2));
    const auto leaf_of = leavesOf(topology);
    // Leaves in the order of their first node in the step.
    std::vector<std::vector<std::size_t>> leaves;
    std::map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        const auto leaf = leaf_of.find(hosts[i]);
        const std::string name = leaf == leaf_of.end() ? std::string() : leaf->second;
        const auto [at, fresh] = index.emplace(name, leaves.size());
        if (fresh) leaves.emplace_back();
        leaves[at->second].push_back(i);
    }
    const bool known = !leaf_of.empty() && !index.contains("");
    std::vector<std::size_t> chosen;
    if (hosts.size() <= limit) {
        for (std::size_t i = 0; i < hosts.size(); ++i) chosen.push_back(i);
    } else if (leaves.size() > limit || leaves.size() == 1) {
        // More leaves than places, or none known: evenly over the leaves' first nodes, or over all.
        const std::size_t count = leaves.size() == 1 ? hosts.size() : leaves.size();
        for (std::size_t i = 0; i < limit; ++i) {
            const std::size_t at = i * count / limit;
            chosen.push_back(leaves.size() == 1 ? at : leaves[at].front());
        }
    } else {
        // Round by round one more node of each leaf, until there is no place left.
        for (std::size_t round = 0; chosen.size() < limit; ++round)
            for (std::size_t leaf = 0; leaf < leaves.size() && chosen.size() < limit; ++leaf)
                if (round < leaves[leaf].size()) chosen.push_back(leaves[leaf][round]);
    }
    std::sort(chosen.begin(), chosen.end());
    Sample out;
    for (const std::size_t i : chosen) out.hosts.push_back(hosts[i]);
    out.leaves = known ? static_cast<int>(leaves.size()) : 0;
    out.text = "measured " + std::to_string(out.hosts.size()) + " of " +
               std::to_string(hosts.size()) + " nodes";
    if (known) {
        const bool all = leaves.size() <= limit;
        out.text +=
            all ? ", some on each of the " + std::to_string(leaves.size()) + " leaf switches"
                : ", one on each of " + std::to_string(limit) + " of the " +
                      std::to_string(leaves.size()) + " leaf switches";
    } else {
        out.text += ", evenly spread (Slurm knows no switches for them)";
    }
    return out;
}

}  // namespace rdmatune::fabric
