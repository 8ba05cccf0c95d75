// What a GID says about where its port can be reached from, and which one to use.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tuner/topology/node.hpp"

namespace rdmatune {

using GidBytes = std::array<std::uint8_t, 16>;

/// Reads eight groups of four hexadecimal digits, as /sys prints a GID. Nothing for other text.
[[nodiscard]] std::optional<GidBytes> parseGid(std::string_view text);

/// ::ffff:a.b.c.d, the form in which RoCE carries an IPv4 address.
[[nodiscard]] bool isIpv4Mapped(const GidBytes& gid);

/// fe80::/10, or an IPv4 address of 169.254.0.0/16: reaches one Ethernet segment at most.
[[nodiscard]] bool isLinkLocal(const GidBytes& gid);

/// "10.1.0.7" for an IPv4-mapped GID, the groups as given otherwise.
[[nodiscard]] std::string gidText(const Gid& gid);

/// The entry of `hca.gids` to talk with, as a position in that vector; nothing when the table is
/// empty or unreadable. InfiniBand: the lowest index. RoCE: v2 before v1, because v1 does not pass
/// a router; then a routable address before a link-local one; then IPv4 before IPv6, the family
/// NCCL looks for first; then the lowest index.
[[nodiscard]] std::optional<std::size_t> bestGid(const Hca& hca);

/// The GID index of bestGid(), as NCCL_IB_GID_INDEX and ibv_ah_attr mean it.
[[nodiscard]] std::optional<int> bestGidIndex(const Hca& hca);

/// An Ethernet port whose GIDs are all known and all link-local.
[[nodiscard]] bool onlyLinkLocal(const Hca& hca);

}  // namespace rdmatune
