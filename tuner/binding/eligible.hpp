// Which HCAs of a node are for training, before anyone asks which GPU they are near.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/base/result.hpp"
#include "tuner/binding/plan.hpp"

namespace rdmatune {

/// Why one HCA is left out: ExcludedHca without the name.
struct Verdict {
    std::string code;
    std::string reason;
};

/// The outcome of all rules, one entry for each of Node::hcas; nothing: usable.
struct Eligibility {
    std::vector<std::optional<Verdict>> verdicts;
    std::vector<std::string> notes;
    [[nodiscard]] std::vector<int> usable() const;
};

/// Applies the rules in this order; the first that objects decides:
/// hca_exclude, hca_include ("site"), "port-down", "cannot-open", "no-gid", "bonded",
/// "vf-beside-pf", "software", "link-local", "other-link-layer", "other-subnet", "slow". The last
/// five are judgement, and are not applied to an HCA that hca_include names. `gpus`: the step's
/// GPUs. Fails when hca_include leaves no HCA of a node that has some.
[[nodiscard]] Result<Eligibility> judgeHcas(const Node& node, const PlanRequest& request,
                                            const std::vector<int>& gpus);

/// Node::distance[gpu][hca]; Unknown where the matrix has no such entry.
[[nodiscard]] Distance distanceBetween(const Node& node, int gpu, int hca);

/// Whether `entry` of hca_include or hca_exclude names this port: a device's name (all its ports),
/// "name:port", a PCI address, or "address:port". Exact, never a prefix.
[[nodiscard]] bool namesHca(std::string_view entry, const Hca& hca);

}  // namespace rdmatune
