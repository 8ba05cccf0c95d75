// What the writer and the reader of a Node's JSON share.
#pragma once

#include <optional>
#include <string_view>

#include "tuner/topology/node.hpp"

namespace rdmatune {

/// Value of the key "rdma_tune_node"; raised when a reader of today could not understand it.
inline constexpr int kNodeJsonVersion = 1;

/// The value whose toString() is `text`.
template <class Enum>
[[nodiscard]] std::optional<Enum> enumFromText(std::string_view text) {
    // No enumeration of node.hpp has more values than this, and toString() of a number behind the
    // last one gives the text of "unknown", which a real value has given before.
    constexpr int kMost = 8;
    for (int i = 0; i < kMost; ++i)
        if (toString(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
    return std::nullopt;
}

}  // namespace rdmatune
