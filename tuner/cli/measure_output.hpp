// A measurement as JSON and as text for people.
#pragma once

#include <string>
#include <vector>

#include "tuner/fabric/conductor.hpp"

namespace rdmatune::cli {

/// Every figure with its unit in its name, the nodes, the edges, the retests, what was left out,
/// and where the time went.
[[nodiscard]] std::string measurementToJson(const fabric::Outcome& outcome, double seconds,
                                            const std::string& profile_text);

/// A few lines.
[[nodiscard]] std::vector<std::string> measurementToText(const fabric::Outcome& outcome,
                                                         double seconds);

/// A profile alone, as kept from an earlier step.
[[nodiscard]] std::string profileToText(const FabricProfile& profile);

}  // namespace rdmatune::cli
