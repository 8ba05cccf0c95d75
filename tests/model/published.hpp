// Published measurements of ring and tree beside the model's choices.
#pragma once

#include <string>

namespace published {

/// Prints agreement and, where times are given, regret, for each data set of `folder`.
void compare(const std::string& folder);

}  // namespace published
