#include "tuner/binding/agreement.hpp"

#include <set>

#include "tuner/base/text.hpp"
#include "tuner/binding/gid.hpp"

namespace rdmatune {
namespace {

constexpr std::string_view kMagic = "rt-agreed/1";
/// Longer lines are not ours: 1024 rails of the longest subnet text would fit.
constexpr std::size_t kMaxLine = 32768;
constexpr int kMaxRails = 1024;

std::string_view layerName(LinkLayer layer) {
    switch (layer) {
        case LinkLayer::InfiniBand:
            return "IB";
        case LinkLayer::Ethernet:
            return "RoCE";
        case LinkLayer::Unknown:
            break;
    }
    return "none";
}

std::optional<LinkLayer> layerOf(std::string_view name) {
    for (const auto layer : {LinkLayer::Unknown, LinkLayer::InfiniBand, LinkLayer::Ethernet})
        if (name == layerName(layer)) return layer;
    return std::nullopt;
}

/// What subnetOf() can return: hexadecimal digits, dots, colons and a prefix length.
bool isSubnetText(std::string_view text) {
    return !text.empty() && text.size() <= 64 &&
           text.find_first_not_of("0123456789abcdefABCDEF.:/") == std::string_view::npos;
}

std::string hexPrefix64(const GidBytes& gid) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    for (std::size_t i = 0; i < 8; ++i) {
        if (i == 4) out += ':';
        out += kDigits[gid[i] >> 4];
        out += kDigits[gid[i] & 15];
    }
    return out;
}

bool applyField(Agreement& out, std::string_view key, std::string_view value) {
    if (key == "rails") {
        const auto rails = parseInt<int>(value);
        if (!rails || *rails < 0 || *rails > kMaxRails) return false;
        out.rails = *rails;
    } else if (key == "layer") {
        const auto layer = layerOf(value);
        if (!layer) return false;
        out.link_layer = *layer;
    } else if (key == "subnets") {
        for (const auto subnet : split(value, ',')) {
            if (!isSubnetText(subnet)) return false;
            out.subnets.emplace_back(subnet);
        }
    } else if (key == "order") {
        if (value != "position" && value != "subnet") return false;
        out.rails_by_subnet = value == "subnet";
    } else if (key == "cross") {
        if (value != "yes" && value != "no") return false;
        out.rails_cross = value == "yes";
    }
    return true;  // a field of a newer release is no reason to lose the others
}

}  // namespace

std::string Agreement::str() const {
    std::string out(kMagic);
    out += " rails=" + std::to_string(rails) + " layer=";
    out += layerName(link_layer);
    if (!subnets.empty()) out += " subnets=" + join(subnets, ",");
    out += rails_by_subnet ? " order=subnet" : " order=position";
    out += rails_cross ? " cross=yes" : " cross=no";
    return out;
}

std::optional<Agreement> Agreement::parse(std::string_view line) {
    line = trim(line);
    if (line.size() > kMaxLine) return std::nullopt;
    const auto words = split(line, ' ');
    if (words.front() != kMagic) return std::nullopt;
    Agreement out;
    std::set<std::string_view> seen;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const auto equals = words[i].find('=');
        if (equals == std::string_view::npos) return std::nullopt;
        const auto key = words[i].substr(0, equals);
        if (!seen.insert(key).second) return std::nullopt;
        if (!applyField(out, key, words[i].substr(equals + 1))) return std::nullopt;
    }
    if (!seen.contains("rails") || !seen.contains("layer")) return std::nullopt;
    if (out.rails_by_subnet && out.subnets.empty()) return std::nullopt;
    return out;
}

std::string subnetOf(const Hca& hca) {
    if (hca.link_layer == LinkLayer::InfiniBand) {
        for (const Gid& gid : hca.gids)
            if (gid.index == 0)
                if (const auto bytes = parseGid(gid.value)) return hexPrefix64(*bytes);
        return {};
    }
    const auto best = bestGid(hca);
    if (!best) return {};
    const auto bytes = parseGid(hca.gids[*best].value);
    if (!bytes || isLinkLocal(*bytes)) return {};  // tells nothing: every segment has the same
    if (!isIpv4Mapped(*bytes)) return hexPrefix64(*bytes) + "/64";
    std::string out;
    for (std::size_t i = 12; i < 15; ++i) out += std::to_string((*bytes)[i]) + '.';
    return out + "0/24";
}

}  // namespace rdmatune
