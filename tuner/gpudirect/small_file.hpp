// Reading the small files of /sys and /proc, whatever they turn out to be.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace rdmatune {

/// The first `max` bytes of a file; nothing when it cannot be opened or read. Never blocks on a
/// pipe that somebody put in the way.
[[nodiscard]] std::optional<std::string> readSmallFile(const std::string& path,
                                                       std::size_t max = 65536);

/// Whether a path exists (links are followed).
[[nodiscard]] bool pathExists(const std::string& path);

/// The last component of what a link points to ("" when it is no link), as for .../driver.
[[nodiscard]] std::string linkName(const std::string& path);

/// Names in a directory, sorted, without "." and ".."; empty when it cannot be read. At most `max`.
[[nodiscard]] std::vector<std::string> listDirectory(const std::string& path,
                                                     std::size_t max = 4096);

}  // namespace rdmatune
