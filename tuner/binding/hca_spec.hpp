// NCCL_IB_HCA as a user wrote it: what it says, what NCCL makes of it, and what is wrong with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/topology/node.hpp"

namespace rdmatune {

/// [^][=]NAME[:PORT[:RAIL[:PLANE]]],... as NCCL reads it: ^ turns the list into an exclusion, =
/// asks for whole names where a bare name is a prefix; no port means all ports; an empty value
/// means all HCAs. Read from NCCL's documentation and from the behaviour of 2.22 to 2.29.
struct HcaSpec {
    struct Entry {
        std::string name;
        std::optional<int> port;
        std::optional<int> rail;  ///< the third and fourth field of newer launchers
        std::optional<int> plane;
        bool operator==(const Entry&) const = default;
    };
    bool exclude = false;  ///< ^
    bool exact = false;    ///< =
    std::vector<Entry> entries;
    /// What NCCL will not read as it was meant, each one sentence: modifiers given twice or inside
    /// the list, ports that are no numbers.
    std::vector<std::string> problems;

    [[nodiscard]] static HcaSpec parse(std::string_view text);
    /// The HCAs that it selects, as indexes into Node::hcas.
    [[nodiscard]] std::vector<int> select(const Node& node) const;
    /// `problems`, and: a bare name that takes further devices because it begins their names, an
    /// entry that matches nothing, a list that leaves no HCA.
    [[nodiscard]] std::vector<std::string> lint(const Node& node) const;
};

}  // namespace rdmatune
