#include "tuner/model/rules.hpp"

#include <cstring>

namespace rdmatune::model {
namespace {

/// Walks over the compact form; every function fails on the first surprise.
class Cursor {
  public:
    explicit Cursor(const char* text) : at_(text) {}

    [[nodiscard]] bool atEnd() const { return *at_ == '\0'; }
    bool character(char c) {
        if (*at_ != c) return false;
        ++at_;
        return true;
    }
    bool number(std::uint64_t& value) {
        const char* const first = at_;
        std::uint64_t sum = 0;
        while (*at_ >= '0' && *at_ <= '9') {
            const auto digit = static_cast<std::uint64_t>(*at_ - '0');
            if (sum > (UINT64_MAX - digit) / 10) return false;
            sum = sum * 10 + digit;
            ++at_;
        }
        value = sum;
        return at_ != first && (*first != '0' || at_ - first == 1);
    }
    /// FROM-TO, where TO may be '*' for no limit.
    bool range(std::uint64_t& from, std::uint64_t& to, std::uint64_t limit) {
        if (!number(from) || !character('-')) return false;
        if (character('*')) {
            to = limit;
            return from <= limit;
        }
        return number(to) && to <= limit && from <= to;
    }
    template <std::size_t N>
    bool word(const char* const (&words)[N], std::uint8_t& index) {
        if (character('*')) {
            index = kAny;
            return true;
        }
        const std::size_t length = std::strcspn(at_, ":/");
        for (std::size_t i = 0; i < N; ++i)
            if (std::strlen(words[i]) == length && std::memcmp(words[i], at_, length) == 0) {
                index = static_cast<std::uint8_t>(i);
                at_ += length;
                return true;
            }
        return false;
    }
    bool algorithm(std::uint8_t& index) {
        constexpr char kNccl[] = "nccl";
        constexpr std::size_t kLength = sizeof(kNccl) - 1;
        if (std::strncmp(at_, kNccl, kLength) == 0 && at_[kLength] == ':') {
            index = kLeaveToNccl;
            at_ += kLength;
            return true;
        }
        return word(kAlgorithmNames, index);
    }

  private:
    const char* at_;
};

bool parseRule(Cursor& cursor, Rule& rule) {
    std::uint64_t nodes_from = 0;
    std::uint64_t nodes_to = 0;
    if (!cursor.word(kCollectiveNames, rule.collective) || !cursor.character(':') ||
        !cursor.range(rule.bytes_from, rule.bytes_to, UINT64_MAX) || !cursor.character(':') ||
        !cursor.range(nodes_from, nodes_to, UINT32_MAX) || !cursor.character(':') ||
        !cursor.algorithm(rule.algorithm) || !cursor.character(':') ||
        !cursor.word(kProtocolNames, rule.protocol))
        return false;
    rule.nodes_from = static_cast<std::uint32_t>(nodes_from);
    rule.nodes_to = static_cast<std::uint32_t>(nodes_to);
    return rule.valid();
}

}  // namespace

bool parseRules(const char* text, RuleSet& out) {
    out.count = 0;
    Cursor cursor(text);
    if (cursor.atEnd()) return true;
    do {
        if (out.count == RuleSet::kMax || !parseRule(cursor, out.rule[out.count])) return false;
        ++out.count;
    } while (cursor.character('/'));
    return cursor.atEnd();
}

}  // namespace rdmatune::model
