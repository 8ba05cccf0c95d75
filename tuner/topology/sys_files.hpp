// Reading the small files of /sys and /proc, of which any may be missing, odd or refused.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tuner/base/pci_address.hpp"

namespace rdmatune {

/// The file's text, at most `limit` bytes of it, blanks around it trimmed. Nothing when it cannot
/// be opened or read (many attributes answer EINVAL where they do not apply), or is neither a
/// regular file nor empty of surprises such as a FIFO.
[[nodiscard]] std::optional<std::string> readSmall(const std::filesystem::path& path,
                                                   std::size_t limit = 4096);

/// A decimal number at the start of the file ("4: ACTIVE" is 4); nothing otherwise.
[[nodiscard]] std::optional<int> readNumber(const std::filesystem::path& path);

/// A hexadecimal number with or without "0x"; nothing otherwise.
[[nodiscard]] std::optional<unsigned> readHex(const std::filesystem::path& path);

/// Names in a directory, sorted, without "." and ".."; empty when it cannot be read. Never more
/// than 65536 of them.
[[nodiscard]] std::vector<std::string> listNames(const std::filesystem::path& directory);

/// The symbolic link resolved; nothing when it does not lead anywhere.
[[nodiscard]] std::optional<std::filesystem::path> resolved(const std::filesystem::path& path);

/// The last component of a link's target; empty when there is no such link.
[[nodiscard]] std::string linkName(const std::filesystem::path& path);

/// All components of a path that are full PCI addresses (with a domain), in order.
[[nodiscard]] std::vector<PciAddress> pciComponents(const std::filesystem::path& path);

}  // namespace rdmatune
