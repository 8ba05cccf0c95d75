#include "tuner/binding/gid.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {

/// Smaller is better; see bestGid().
std::tuple<bool, bool, bool, int> rank(const Gid& gid, const GidBytes& bytes) {
    return {gid.type != GidType::RoceV2, isLinkLocal(bytes), !isIpv4Mapped(bytes), gid.index};
}

}  // namespace

std::optional<GidBytes> parseGid(std::string_view text) {
    const auto groups = split(trim(text), ':');
    if (groups.size() != 8) return std::nullopt;
    GidBytes out{};
    std::size_t at = 0;
    for (const auto group : groups) {
        std::uint16_t value = 0;
        const auto [end, error] =
            std::from_chars(group.data(), group.data() + group.size(), value, 16);
        if (group.size() != 4 || error != std::errc{} || end != group.data() + group.size())
            return std::nullopt;
        out[at++] = static_cast<std::uint8_t>(value >> 8);
        out[at++] = static_cast<std::uint8_t>(value & 0xff);
    }
    return out;
}

bool isIpv4Mapped(const GidBytes& gid) {
    return std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t b) { return b == 0; }) &&
           gid[10] == 0xff && gid[11] == 0xff;
}

bool isLinkLocal(const GidBytes& gid) {
    if (isIpv4Mapped(gid)) return gid[12] == 169 && gid[13] == 254;
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

std::string gidText(const Gid& gid) {
    const auto bytes = parseGid(gid.value);
    if (!bytes || !isIpv4Mapped(*bytes)) return gid.value;
    std::string out;
    for (std::size_t i = 12; i < 16; ++i) {
        if (i > 12) out += '.';
        out += std::to_string((*bytes)[i]);
    }
    return out;
}

std::optional<std::size_t> bestGid(const Hca& hca) {
    std::optional<std::size_t> best;
    std::tuple<bool, bool, bool, int> best_rank{};
    for (std::size_t i = 0; i < hca.gids.size(); ++i) {
        const Gid& gid = hca.gids[i];
        const auto bytes = parseGid(gid.value);
        if (!bytes) continue;
        const auto mine = hca.link_layer == LinkLayer::InfiniBand
                              ? std::tuple{false, false, false, gid.index}
                              : rank(gid, *bytes);
        if (!best || mine < best_rank) {
            best = i;
            best_rank = mine;
        }
    }
    return best;
}

std::optional<int> bestGidIndex(const Hca& hca) {
    const auto best = bestGid(hca);
    if (!best) return std::nullopt;
    return hca.gids[*best].index;
}

bool onlyLinkLocal(const Hca& hca) {
    if (hca.link_layer == LinkLayer::InfiniBand || !hca.gids_known || hca.gids.empty())
        return false;
    return std::ranges::all_of(hca.gids, [](const Gid& gid) {
        const auto bytes = parseGid(gid.value);
        return bytes && isLinkLocal(*bytes);
    });
}

}  // namespace rdmatune
