// The rules that judgeHcas() applies, one concept per file; private to this room.
#pragma once

#include "tuner/binding/eligible.hpp"

namespace rdmatune {

/// hca_include and hca_exclude (site_names.cpp).
[[nodiscard]] Status applySiteNames(const Node& node, const PlanRequest& request, Eligibility& out);
[[nodiscard]] bool includedBySite(const PlanRequest& request, const Hca& hca);

/// What cannot work, whoever asks for it: down, not to be opened, without GID, the same wire twice.
void applyFacts(const Node& node, Eligibility& out);

/// What could work but does not belong to the compute fabric: link layer, subnet, speed.
void applyFabric(const Node& node, const PlanRequest& request, const std::vector<int>& gpus,
                 Eligibility& out);

}  // namespace rdmatune
