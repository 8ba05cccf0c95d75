// Which nodes of a big job are measured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rdmatune::fabric {

struct Sample {
    std::vector<std::string> hosts;  ///< in the step's order
    int leaves = 0;                  ///< leaf switches the step's nodes are on; 0: not known
    std::string text;                ///< one sentence for the user
};

/// At most `most` of the hosts (at least two), spread so that every leaf switch has its share and
/// none is left out while there is room; neighbours on a leaf come in pairs where there is room,
/// since the ring runs inside a leaf as well as between leaves. `topology`: what `scontrol show
/// topology` prints; empty or flat: evenly spread.
[[nodiscard]] Sample sampleHosts(const std::vector<std::string>& hosts, std::string_view topology,
                                 int most);

}  // namespace rdmatune::fabric
