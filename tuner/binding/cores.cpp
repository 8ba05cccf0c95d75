#include "tuner/binding/cores.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "tuner/binding/spread.hpp"

namespace rdmatune {
namespace {

/// First CPUs and lengths of the runs of consecutive CPUs.
std::vector<std::pair<int, int>> runs(const CpuSet& cpus) {
    std::vector<std::pair<int, int>> out;
    for (const int cpu : cpus.list()) {
        if (!out.empty() && out.back().first + out.back().second == cpu)
            ++out.back().second;
        else
            out.emplace_back(cpu, 1);
    }
    return out;
}

/// How far a hyperthread's number is from its sibling's; 0: not to be told.
int siblingOffset(const Node& node) {
    int offset = 0;
    for (const NumaNode& numa : node.numa) {
        if (numa.cpus.empty()) continue;  // memory without CPUs
        const auto parts = runs(numa.cpus);
        if (parts.size() != 2 || parts[0].second != parts[1].second) return 0;
        const int here = parts[1].first - parts[0].first;
        if (offset != 0 && here != offset) return 0;
        offset = here;
    }
    return offset;
}

int numaOf(const Node& node, int cpu) {
    for (const NumaNode& numa : node.numa)
        if (numa.cpus.contains(cpu)) return numa.os_index;
    return -1;
}

/// Cores (or single CPUs) that may be given, in the order in which neighbours are adjacent.
std::vector<CpuSet> unitsOf(const Node& node, const CpuSet& allowed, bool whole_cores) {
    std::vector<CpuSet> units;
    CpuSet placed;
    if (whole_cores)
        for (const CpuSet& core : coresOf(node)) {
            CpuSet part;
            for (const int cpu : core.list())
                if (allowed.contains(cpu)) part.add(cpu);
            if (part.empty()) continue;
            for (const int cpu : part.list()) placed.add(cpu);
            units.push_back(part);
        }
    for (const int cpu : (allowed - placed).list()) units.push_back(CpuSet({cpu}));
    std::ranges::stable_sort(units, {}, [&](const CpuSet& unit) {
        const int first = unit.list().front();
        return std::pair{numaOf(node, first), first};
    });
    return units;
}

/// Whether a few CPUs and many have one in common, without looking at all of the many.
bool overlap(const CpuSet& few, const CpuSet& many) {
    return std::ranges::any_of(few.list(), [&](int cpu) { return many.contains(cpu); });
}

/// Gives each unit to one of the ranks in `wanted`, evenly; ranks of one group of units get
/// adjacent ones.
std::vector<CpuSet> deal(const std::vector<CpuSet>& units, const std::vector<CpuSet>& wanted) {
    std::map<std::vector<int>, std::vector<std::size_t>>
        groups;  // ranks that may have them -> units
    for (std::size_t u = 0; u < units.size(); ++u) {
        std::vector<int> ranks;
        for (std::size_t r = 0; r < wanted.size(); ++r)
            if (overlap(units[u], wanted[r])) ranks.push_back(static_cast<int>(r));
        if (!ranks.empty()) groups[ranks].push_back(u);
    }
    std::vector<CpuSet> out(wanted.size());
    std::vector<std::vector<int>> jobs;
    for (const auto& [ranks, members] : groups) jobs.insert(jobs.end(), members.size(), ranks);
    const auto rank_of = balance(jobs, wanted.size());
    std::size_t job = 0;
    for (const auto& [ranks, members] : groups) {
        std::map<int, int> count;
        for (std::size_t i = 0; i < members.size(); ++i) ++count[rank_of[job++]];
        auto unit = members.begin();
        for (const auto& [rank, n] : count)
            for (int i = 0; i < n; ++i)
                for (const int cpu : units[*unit++].list()) out[rank].add(cpu);
    }
    return out;
}

/// There are too few CPUs for some ranks: they, and all who have CPUs that they want, use theirs in
/// common. Pinning two ranks to one CPU each would only keep the kernel from balancing them.
void shareAmong(std::vector<CpuSet>& given, const std::vector<CpuSet>& wanted,
                std::vector<CoreShare>& out) {
    std::vector<std::size_t> open;
    for (std::size_t r = 0; r < given.size(); ++r)
        if (given[r].empty()) open.push_back(r);
    while (!open.empty()) {
        const std::size_t rank = open.back();
        open.pop_back();
        out[rank].shared = true;
        given[rank] = wanted[rank];
        for (std::size_t other = 0; other < given.size(); ++other)
            if (!out[other].shared && !(given[other] & wanted[rank]).empty()) {
                out[other].shared = true;
                open.push_back(other);
            }
    }
}

bool everybodyHas(const std::vector<CpuSet>& given) {
    return std::ranges::none_of(given, [](const CpuSet& set) { return set.empty(); });
}

}  // namespace

CpuSet cpusNear(const Node& node, int gpu) {
    const Gpu& it = node.gpus[gpu];
    if (!it.cpus.empty()) return it.cpus;
    for (const NumaNode& numa : node.numa)
        if (it.numa >= 0 && numa.os_index == it.numa) return numa.cpus;
    return {};
}

std::vector<CpuSet> coresOf(const Node& node) {
    std::vector<CpuSet> out;
    const int offset = siblingOffset(node);
    for (const NumaNode& numa : node.numa)
        for (const int cpu : numa.cpus.list()) {
            if (offset == 0)
                out.push_back(CpuSet({cpu}));
            else if (numa.cpus.contains(cpu + offset))
                out.push_back(CpuSet({cpu, cpu + offset}));
        }
    return out;
}

std::vector<CoreShare> splitCores(const Node& node,
                                  const std::vector<std::vector<int>>& gpus_of_rank,
                                  const CpuSet& allowed) {
    std::vector<CoreShare> out(gpus_of_rank.size());
    if (allowed.empty()) return out;
    std::vector<CpuSet> wanted;
    CpuSet near_somebody;
    for (std::size_t r = 0; r < gpus_of_rank.size(); ++r) {
        CpuSet near;
        for (const int gpu : gpus_of_rank[r]) near = near | cpusNear(node, gpu);
        if (near.empty()) out[r].from = CoreShare::From::Anywhere;
        near = near & allowed;
        if (near.empty() && out[r].from == CoreShare::From::Near)
            out[r].from = CoreShare::From::Elsewhere;
        near_somebody = near_somebody | near;
        wanted.push_back(near);
    }
    const CpuSet near_nobody = allowed - near_somebody;
    for (CpuSet& set : wanted)
        if (set.empty()) set = near_nobody.empty() ? allowed : near_nobody;
    auto given = deal(unitsOf(node, allowed, true), wanted);
    if (!everybodyHas(given)) given = deal(unitsOf(node, allowed, false), wanted);
    if (!everybodyHas(given)) shareAmong(given, wanted, out);
    for (std::size_t r = 0; r < out.size(); ++r) out[r].cpus = given[r];
    return out;
}

}  // namespace rdmatune
