#include "tuner/fabric/verbs_address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "tuner/base/text.hpp"
#include "tuner/binding/gid.hpp"

namespace rdmatune::fabric {
namespace {

constexpr unsigned kRoceV1 = 1;
constexpr unsigned kMessages = 2;
constexpr std::uint32_t k24Bits = 0xffffff;

template <class T>
bool readHex(std::string_view text, T& out, std::uint64_t most) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{} || end != text.data() + text.size() || value > most) return false;
    out = static_cast<T>(value);
    return true;
}

bool readGid(std::string_view text, std::array<std::uint8_t, 16>& out) {
    if (text.size() != 32) return false;
    for (std::size_t i = 0; i < out.size(); ++i)
        if (!readHex(text.substr(2 * i, 2), out[i], 0xff)) return false;
    return true;
}

}  // namespace

std::string VerbsAddress::str() const {
    std::string hex;
    for (const auto byte : gid) hex += fmt::format("{:02x}", byte);
    return fmt::format("rc1:{}:{}:{:x}:{:x}:{:x}:{}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}",
                       ethernet ? 'E' : 'I', mtu, lid, qpn, psn, hex,
                       (roce_v1 ? kRoceV1 : 0) | (messages ? kMessages : 0), rd_atomic, control_key,
                       control, stream_key, stream);
}

std::optional<VerbsAddress> VerbsAddress::parse(std::string_view text) {
    const auto parts = split(text, ':');
    if (parts.size() != 13 || parts[0] != "rc1" || (parts[1] != "E" && parts[1] != "I"))
        return std::nullopt;
    VerbsAddress out;
    unsigned flags = 0;
    out.ethernet = parts[1] == "E";
    const bool good =
        readHex(parts[2], out.mtu, 5) && out.mtu >= 1 && readHex(parts[3], out.lid, 0xffff) &&
        readHex(parts[4], out.qpn, k24Bits) && readHex(parts[5], out.psn, k24Bits) &&
        readGid(parts[6], out.gid) && readHex(parts[7], flags, kRoceV1 | kMessages) &&
        readHex(parts[8], out.rd_atomic, 255) && readHex(parts[9], out.control_key, UINT32_MAX) &&
        readHex(parts[10], out.control, UINT64_MAX) &&
        readHex(parts[11], out.stream_key, UINT32_MAX) &&
        readHex(parts[12], out.stream, UINT64_MAX);
    if (!good) return std::nullopt;
    out.roce_v1 = (flags & kRoceV1) != 0;
    out.messages = (flags & kMessages) != 0;
    return out;
}

std::string VerbsAddress::describe() const {
    if (!ethernet && lid != 0) return fmt::format("LID {} QP {:#x}", lid, qpn);
    std::vector<std::string> groups;
    for (std::size_t i = 0; i < gid.size(); i += 2)
        groups.push_back(fmt::format("{:02x}{:02x}", gid[i], gid[i + 1]));
    Gid text;
    text.value = join(groups, ":");
    return fmt::format("{} QP {:#x}", gidText(text), qpn);
}

bool needsGlobalRoute(const VerbsAddress& self, const VerbsAddress& peer) {
    if (self.ethernet || peer.lid == 0) return true;
    return !std::equal(self.gid.begin(), self.gid.begin() + 8, peer.gid.begin());
}

std::string mismatch(const VerbsAddress& self, const VerbsAddress& peer) {
    if (self.ethernet != peer.ethernet)
        return fmt::format("one end is {}, the other {}", self.ethernet ? "RoCE" : "InfiniBand",
                           peer.ethernet ? "RoCE" : "InfiniBand");
    if (self.roce_v1 != peer.roce_v1)
        return fmt::format("this end has a RoCE {} GID, the other RoCE {}",
                           self.roce_v1 ? "v1" : "v2", peer.roce_v1 ? "v1" : "v2");
    if (self.messages != peer.messages) return "only one end was opened for messages";
    return {};
}

}  // namespace rdmatune::fabric
