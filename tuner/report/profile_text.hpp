// A profile for people and for scripts; every figure with its unit.
#pragma once

#include <string>
#include <vector>

#include "tuner/profile/profile.hpp"

namespace rdmatune {

/// One line per fact, "ring            1.90 us one way (worst edge 2.30 us), ...".
[[nodiscard]] std::vector<std::string> describeProfile(const FabricProfile& profile);

/// A JSON object; keys end in their unit ("alpha_us", "beta_gbs"); what was not measured is null.
[[nodiscard]] std::string profileToJson(const FabricProfile& profile, int indent);

}  // namespace rdmatune
