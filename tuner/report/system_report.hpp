// One page on a machine and its fabric that a person can read and send: what is in the node, who
// gets what, what is wrong, what was measured, and what NCCL will choose because of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/binding/plan.hpp"
#include "tuner/gpudirect/finding.hpp"
#include "tuner/profile/profile.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

/// What is chosen for one size of allreduce, by NCCL alone and with the profile.
struct ChoiceRow {
    std::uint64_t bytes = 0;
    std::string alone;  ///< "ring simple"; empty: not available
    std::string tuned;
    double tree_us = 0;  ///< the cheapest tree and ring on the measured network, microseconds
    double ring_us = 0;
    bool operator==(const ChoiceRow&) const = default;
};

struct SystemReport {
    std::string version;  ///< of rdma-tune
    std::string made;     ///< date and time, for people
    Node node;
    Plan plan;
    Diagnosis diagnosis;
    std::optional<FabricProfile> profile;
    std::string profile_problem;     ///< why a profile that was given is not used
    std::uint32_t ranks = 0;         ///< of the communicator that `choices` are for
    std::vector<ChoiceRow> choices;  ///< empty: no profile, or one that changes nothing
};

[[nodiscard]] std::string systemReportText(const SystemReport& report);
/// {"version","made","node":{...},"plan":{...},"diagnosis":{...},"profile":{...}|null,"choices":[...]}
[[nodiscard]] std::string systemReportJson(const SystemReport& report, int indent = -1);
/// A whole page: no scripts, nothing from elsewhere; every text from outside is escaped.
[[nodiscard]] std::string systemReportHtml(const SystemReport& report);

/// What NCCL chooses for allreduce, for sizes from 1 KiB to 4 GiB, without and with the profile,
/// with `ranks_per_node` ranks on each of the profile's nodes. Empty when the profile changes
/// nothing.
[[nodiscard]] std::vector<ChoiceRow> choicesFor(const FabricProfile& profile,
                                                std::uint32_t ranks_per_node);

/// "64 KiB", "1 GiB"
[[nodiscard]] std::string sizeName(std::uint64_t bytes);
/// Text for HTML, in an element or a quoted attribute.
[[nodiscard]] std::string escapeHtml(std::string_view text);
/// What verdictOf() says where every pair's state is unknown, as of a saved topology.
inline constexpr const char* kNothingJudged = "not judged";
/// "2 errors, 1 warning", "healthy", or kNothingJudged
[[nodiscard]] std::string verdictOf(const Diagnosis& diagnosis);

}  // namespace rdmatune
