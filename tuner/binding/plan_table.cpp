// The table of ranks that a person reads.
#include <algorithm>
#include <array>

#include "tuner/binding/plan.hpp"
#include "tuner/binding/words.hpp"

namespace rdmatune {
namespace {

constexpr std::size_t kColumns = 5;
using Row = std::array<std::string, kColumns>;

std::string gpuColumn(const Node& node, const std::vector<int>& gpus) {
    std::string out;
    for (const int gpu : gpus) {
        if (!out.empty()) out += ", ";
        out += std::to_string(gpu);
        if (const auto& pci = node.gpus[gpu].pci) out += " (" + pci->str() + ")";
    }
    return out.empty() ? "-" : out;
}

Row rowOf(const Node& node, const RankPlan& rank) {
    const auto orDash = [](std::string text) { return text.empty() ? std::string("-") : text; };
    // Addresses of many GPUs would make the line unreadable: blocks are written as a range.
    const std::string gpus =
        rank.gpus.size() > 2 ? gpuNames(rank.gpus).substr(5) : gpuColumn(node, rank.gpus);
    return {std::to_string(rank.local_rank), gpus, orDash(hcaNames(node, rank.hcas)),
            rank.hcas.empty() ? "-" : std::string(toString(rank.distance)),
            orDash(rank.cpus.str())};
}

}  // namespace

std::string planToTable(const Plan& plan, const Node& node) {
    std::vector<Row> rows{{"rank", "GPU", "HCA", "distance", "CPUs"}};
    for (const RankPlan& rank : plan.ranks) rows.push_back(rowOf(node, rank));
    std::array<std::size_t, kColumns> width{};
    for (const Row& row : rows)
        for (std::size_t c = 0; c < kColumns; ++c) width[c] = std::max(width[c], row[c].size());
    std::string out;
    for (const Row& row : rows) {
        if (!out.empty()) out += '\n';
        for (std::size_t c = 0; c < kColumns; ++c) {
            out += row[c];
            if (c + 1 < kColumns) out += std::string(width[c] - row[c].size() + 2, ' ');
        }
    }
    return out;
}

}  // namespace rdmatune
