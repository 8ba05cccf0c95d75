// Slurm's way of writing many host names: "gpu[01-03,07],login1".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/result.hpp"

namespace rdmatune::fabric {

/// All names in their order. Several brackets in one name multiply; leading zeros are kept. An
/// error for unbalanced brackets, a malformed range, or more than a million names.
[[nodiscard]] Result<std::vector<std::string>> expandHosts(std::string_view list);

}  // namespace rdmatune::fabric
