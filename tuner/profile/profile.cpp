// The text form of a FabricProfile: "rt1;nodes=4;...;rules=;crc=0123abcd". Fixed fields in a fixed
// order, whole numbers, CRC-32 of everything before ";crc=". No blank, comma or quote ever occurs,
// so that the line passes through srun's --export, environments and container launchers unchanged.
#include "tuner/profile/profile.hpp"

#include <cstring>

#include "tuner/profile/crc32.hpp"

namespace rdmatune {
namespace {

constexpr char kMagic[] = "rt";
constexpr std::uint32_t kTextVersion = 1;
constexpr char kChecksumKey[] = ";crc=";
constexpr std::size_t kChecksumLength = sizeof(kChecksumKey) - 1 + 8;

constexpr std::uint32_t kNodesMax = 1'000'000;
constexpr std::uint32_t kAlphaMaxNs = 1'000'000'000;   // one second
constexpr std::uint32_t kBetaMaxMbps = 1'000'000'000;  // 10^15 bytes/s

bool isHostChar(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

bool isRuleChar(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == ':' || c == '/' ||
           c == '*';
}

/// Every field with its bounds, in the order of the text. Reader and writer both walk this one
/// list, so that they cannot drift apart.
template <class Profile, class Visitor>
bool visitFields(Profile& p, Visitor& v) {
    const auto pattern = [&v](auto& f, const char* alpha, const char* alpha_worst, const char* beta,
                              const char* beta_worst) {
        return v.number(alpha, f.alpha_ns, 0U, kAlphaMaxNs) &&
               v.number(alpha_worst, f.alpha_worst_ns, 0U, kAlphaMaxNs) &&
               v.number(beta, f.beta_mbps, 0U, kBetaMaxMbps) &&
               v.number(beta_worst, f.beta_worst_mbps, 0U, kBetaMaxMbps);
    };
    static constexpr const char* kTransports[] = {"tcp", "ib", "roce"};
    static constexpr const char* kGdr[] = {"untried", "no", "dmabuf", "peermem"};
    return v.number("nodes", p.nodes, 1U, kNodesMax) &&
           v.number("measured", p.nodes_measured, 0U, kNodesMax) &&
           v.word("net", p.transport, kTransports) && v.word("gdr", p.gdr, kGdr) &&
           v.number("rails", p.rails, 0U, static_cast<std::uint32_t>(kProfileMaxRails)) &&
           v.number("rail", p.rail_mbps, 0U, kBetaMaxMbps) &&
           v.number("nominal", p.rail_nominal_mbps, 0U, kBetaMaxMbps) &&
           pattern(p.ring, "ra", "raw", "rb", "rbw") && pattern(p.tree, "ta", "taw", "tb", "tbw") &&
           v.flag("complete", p.complete) && v.flag("neutral", p.neutral) &&
           v.characters("slow", p.slow_node, sizeof p.slow_node, isHostChar) &&
           v.characters("rules", p.rules, sizeof p.rules, isRuleChar) &&
           p.nodes_measured <= p.nodes;
}

class Writer {
  public:
    Writer(char* out, std::size_t size) : out_(out), size_(size) {}

    bool raw(const char* text, std::size_t length) {
        if (length >= size_ - used_) return false;
        std::memcpy(out_ + used_, text, length);
        used_ += length;
        return true;
    }
    bool raw(const char* text) { return raw(text, std::strlen(text)); }

    bool number(const char* key, std::uint32_t value, std::uint32_t low, std::uint32_t high) {
        return value >= low && value <= high && name(key) && digits(value);
    }
    template <class Enum, std::size_t N>
    bool word(const char* key, Enum value, const char* const (&words)[N]) {
        const auto index = static_cast<std::size_t>(value);
        return index < N && name(key) && raw(words[index]);
    }
    bool flag(const char* key, bool value) { return name(key) && raw(value ? "1" : "0"); }
    bool characters(const char* key, const char* value, std::size_t capacity,
                    bool (*allowed)(char)) {
        const std::size_t length = strnlen(value, capacity);
        if (length == capacity) return false;
        for (std::size_t i = 0; i < length; ++i)
            if (!allowed(value[i])) return false;
        return name(key) && raw(value, length);
    }
    bool digits(std::uint32_t value) {
        char text[10];
        std::size_t at = sizeof text;
        do {
            text[--at] = static_cast<char>('0' + value % 10);
            value /= 10;
        } while (value != 0);
        return raw(text + at, sizeof text - at);
    }
    [[nodiscard]] std::size_t used() const { return used_; }

  private:
    bool name(const char* key) { return raw(";") && raw(key) && raw("="); }

    char* out_;
    std::size_t size_;
    std::size_t used_ = 0;
};

class Reader {
  public:
    Reader(const char* begin, const char* end) : at_(begin), end_(end) {}

    bool number(const char* key, std::uint32_t& value, std::uint32_t low, std::uint32_t high) {
        return name(key) && digits(value) && value >= low && value <= high;
    }
    template <class Enum, std::size_t N>
    bool word(const char* key, Enum& value, const char* const (&words)[N]) {
        if (!name(key)) return false;
        const std::size_t length = valueLength();
        for (std::size_t i = 0; i < N; ++i)
            if (std::strlen(words[i]) == length && std::memcmp(words[i], at_, length) == 0) {
                value = static_cast<Enum>(i);
                at_ += length;
                return true;
            }
        return false;
    }
    bool flag(const char* key, bool& value) {
        if (!name(key) || valueLength() != 1 || (*at_ != '0' && *at_ != '1')) return false;
        value = *at_++ == '1';
        return true;
    }
    bool characters(const char* key, char* value, std::size_t capacity, bool (*allowed)(char)) {
        if (!name(key)) return false;
        const std::size_t length = valueLength();
        if (length >= capacity) return false;
        for (std::size_t i = 0; i < length; ++i) {
            if (!allowed(at_[i])) return false;
            value[i] = at_[i];
        }
        value[length] = '\0';
        at_ += length;
        return true;
    }
    /// A decimal number without sign or leading zeros, below 2^32.
    bool digits(std::uint32_t& value) {
        std::uint64_t sum = 0;
        const char* const first = at_;
        while (at_ != end_ && *at_ >= '0' && *at_ <= '9') {
            sum = sum * 10 + static_cast<std::uint64_t>(*at_++ - '0');
            if (sum > 0xffffffffU) return false;
        }
        if (at_ == first || (*first == '0' && at_ - first > 1)) return false;
        value = static_cast<std::uint32_t>(sum);
        return true;
    }
    [[nodiscard]] bool atEnd() const { return at_ == end_; }
    [[nodiscard]] const char* position() const { return at_; }

  private:
    bool literal(const char* text, std::size_t length) {
        if (static_cast<std::size_t>(end_ - at_) < length || std::memcmp(at_, text, length) != 0)
            return false;
        at_ += length;
        return true;
    }
    bool name(const char* key) {
        return literal(";", 1) && literal(key, std::strlen(key)) && literal("=", 1);
    }
    [[nodiscard]] std::size_t valueLength() const {
        const char* to = at_;
        while (to != end_ && *to != ';') ++to;
        return static_cast<std::size_t>(to - at_);
    }

    const char* at_;
    const char* end_;
};

void hexWord(std::uint32_t value, char (&out)[8]) {
    for (int i = 7; i >= 0; --i, value >>= 4) out[i] = "0123456789abcdef"[value & 15U];
}

}  // namespace

const char* describe(ProfileError error) {
    switch (error) {
        case ProfileError::None:
            return "no error";
        case ProfileError::TooLong:
            return "longer than a profile can be";
        case ProfileError::NotAProfile:
            return "does not begin like a profile (\"rt1;\")";
        case ProfileError::Version:
            return "made by a newer rdma-tune";
        case ProfileError::Checksum:
            return "checksum does not match: damaged or cut short";
        case ProfileError::Field:
            return "a field is missing, unknown, malformed or out of range";
    }
    return "unknown error";
}

ProfileError parseProfile(const char* text, FabricProfile& out) {
    if (text == nullptr) return ProfileError::NotAProfile;
    // The first line: `rdma-tune measure` prints another one, which a shell's "$(...)" keeps.
    std::size_t length = 0;
    while (length < kProfileTextMax && text[length] != '\0' && text[length] != '\n') ++length;
    if (length == kProfileTextMax) return ProfileError::TooLong;

    constexpr std::size_t kMagicLength = sizeof(kMagic) - 1;
    if (length <= kMagicLength || std::memcmp(text, kMagic, kMagicLength) != 0)
        return ProfileError::NotAProfile;
    Reader head(text + kMagicLength, text + length);
    std::uint32_t version = 0;
    if (!head.digits(version) || version == 0 || head.atEnd() || *head.position() != ';')
        return ProfileError::NotAProfile;
    // Before the checksum: a newer version may compute it otherwise.
    if (version > kTextVersion) return ProfileError::Version;

    const char* const body = head.position();
    const auto body_length = static_cast<std::size_t>(text + length - body);
    if (body_length < kChecksumLength) return ProfileError::Checksum;
    const char* const body_end = text + length - kChecksumLength;
    char expected[8];
    hexWord(crc32(text, static_cast<std::size_t>(body_end - text)), expected);
    if (std::memcmp(body_end, kChecksumKey, sizeof(kChecksumKey) - 1) != 0 ||
        std::memcmp(text + length - sizeof expected, expected, sizeof expected) != 0)
        return ProfileError::Checksum;

    FabricProfile profile;
    Reader reader(body, body_end);
    if (!visitFields(profile, reader) || !reader.atEnd()) return ProfileError::Field;
    out = profile;
    return ProfileError::None;
}

std::size_t formatProfile(const FabricProfile& profile, char* out, std::size_t size) {
    if (out == nullptr || size == 0) return 0;
    Writer writer(out, size < kProfileTextMax ? size : kProfileTextMax);
    out[0] = '\0';
    if (!writer.raw(kMagic) || !writer.digits(kTextVersion) || !visitFields(profile, writer)) {
        out[0] = '\0';
        return 0;
    }
    char checksum[8];
    hexWord(crc32(out, writer.used()), checksum);
    if (!writer.raw(kChecksumKey) || !writer.raw(checksum, sizeof checksum)) {
        out[0] = '\0';
        return 0;
    }
    out[writer.used()] = '\0';
    return writer.used();
}

}  // namespace rdmatune
