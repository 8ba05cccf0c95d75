#include "tuner/fabric/handshake.hpp"

#include <endian.h>
#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tuner/fabric/socket.hpp"

namespace rdmatune::fabric {
namespace {

// Layout: 8 bytes magic, purpose, 7 zero bytes, from, to (little-endian), 56 bytes cookie.
constexpr std::string_view kMagic = "RDMATUN1";
constexpr std::size_t kPurposeAt = 8;
constexpr std::size_t kFromAt = 16;
constexpr std::size_t kToAt = 20;
constexpr std::size_t kCookieAt = 24;

std::string padded(std::string_view cookie) {
    std::string out(cookie.substr(0, sizeof(Greeting) - kCookieAt));
    out.resize(sizeof(Greeting) - kCookieAt, '\0');
    return out;
}

}  // namespace

std::string makeCookie() {
    std::array<unsigned char, 16> bytes{};
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
    std::string out;
    for (const unsigned char byte : bytes) {
        constexpr char kDigits[] = "0123456789abcdef";
        out += kDigits[byte >> 4];
        out += kDigits[byte & 15];
    }
    return out;
}

Greeting makeGreeting(Purpose purpose, std::string_view cookie, std::uint32_t from,
                      std::uint32_t to) {
    Greeting out{};
    std::copy(kMagic.begin(), kMagic.end(), out.begin());
    out[kPurposeAt] = static_cast<char>(purpose);
    const std::uint32_t from_le = htole32(from);
    const std::uint32_t to_le = htole32(to);
    std::memcpy(out.data() + kFromAt, &from_le, sizeof from_le);
    std::memcpy(out.data() + kToAt, &to_le, sizeof to_le);
    const std::string secret = padded(cookie);
    std::copy(secret.begin(), secret.end(), out.begin() + kCookieAt);
    return out;
}

std::optional<Introduction> checkGreeting(const Greeting& greeting, Purpose purpose,
                                          std::string_view cookie) {
    const std::string_view text(greeting.data(), greeting.size());
    if (cookie.empty() || !text.starts_with(kMagic) ||
        text[kPurposeAt] != static_cast<char>(purpose))
        return std::nullopt;
    if (!equalSecret(text.substr(kCookieAt), padded(cookie))) return std::nullopt;
    Introduction out;
    std::memcpy(&out.from, greeting.data() + kFromAt, sizeof out.from);
    std::memcpy(&out.to, greeting.data() + kToAt, sizeof out.to);
    out.from = le32toh(out.from);
    out.to = le32toh(out.to);
    return out;
}

void logRefused(int fd, std::string_view why) {
    std::fprintf(stderr, "rdma-tune: refused a connection from %s: %.*s\n", peerName(fd).c_str(),
                 static_cast<int>(why.size()), why.data());
}

}  // namespace rdmatune::fabric
