// The table's rows with what they do, shared by the files of this room only.
#pragma once

#include <string>
#include <string_view>

#include "tuner/config/options.hpp"

namespace rdmatune::config {

/// A value as it was given somewhere.
struct Value {
    std::string_view text;  ///< trimmed
    std::string origin;     ///< "FILE:LINE" or the variable's name; may be empty
    bool append = false;    ///< a list goes on instead of being replaced
};

/// One option and its reader. A reader's error says what was expected, not where.
struct Row {
    OptionInfo info;
    Status (*set)(Options& options, const Value& value);
};

/// The row of a key that the configuration file may have, or null.
[[nodiscard]] const Row* findFileRow(std::string_view key);
/// All such keys, separated by commas.
[[nodiscard]] std::string fileKeys();

}  // namespace rdmatune::config
