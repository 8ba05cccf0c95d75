// Choices that a site has pinned, in the compact form in which they travel inside a profile:
// rules joined by '/', each COLLECTIVE:BYTES:NODES:ALGORITHM:PROTOCOL, such as
// "allreduce:0-65536:2-4:tree:ll/*:0-*:8-*:nccl:*". The first rule that fits decides. Runs inside
// NCCL: no allocation. Reading rdma-tune.conf's own spelling is tuner/config/rule_text.hpp's work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tuner/model/types.hpp"

namespace rdmatune::model {

inline constexpr std::uint8_t kAny = 0xff;
/// As an algorithm: leave this case to NCCL alone.
inline constexpr std::uint8_t kLeaveToNccl = 0xfe;
/// LL carries a flag with every four bytes and needs twice the bandwidth; a rule that kept it for
/// large messages cost 2x at 512 KiB and 39x at 16 MiB (published in the nccl-eBPF tuner's notes).
/// No rule pins it above this size.
inline constexpr std::uint64_t kLargestPinnedLl = 256 * 1024;

struct Rule {
    std::uint64_t bytes_from = 0;
    std::uint64_t bytes_to = UINT64_MAX;  ///< included
    std::uint32_t nodes_from = 0;
    std::uint32_t nodes_to = UINT32_MAX;  ///< included
    std::uint8_t collective = kAny;
    std::uint8_t algorithm = kAny;  ///< an Algorithm, kAny or kLeaveToNccl
    std::uint8_t protocol = kAny;   ///< a Protocol or kAny

    [[nodiscard]] bool fits(Collective what, std::uint64_t bytes, std::uint32_t nodes) const {
        return (collective == kAny || collective == static_cast<std::uint8_t>(what)) &&
               bytes >= bytes_from && bytes <= bytes_to && nodes >= nodes_from && nodes <= nodes_to;
    }
    /// Whether the rule says anything at all and nothing forbidden.
    [[nodiscard]] bool valid() const {
        const bool pins_ll = protocol == static_cast<std::uint8_t>(Protocol::LL);
        return bytes_from <= bytes_to && nodes_from <= nodes_to &&
               (algorithm != kAny || protocol != kAny) &&
               !(algorithm == kLeaveToNccl && protocol != kAny) &&
               !(pins_ll && bytes_to > kLargestPinnedLl);
    }
    bool operator==(const Rule&) const = default;
};

struct RuleSet {
    static constexpr std::size_t kMax = 48;
    Rule rule[kMax];
    std::size_t count = 0;

    /// The first rule that fits, or null.
    [[nodiscard]] const Rule* find(Collective what, std::uint64_t bytes,
                                   std::uint32_t nodes) const {
        for (std::size_t i = 0; i < count; ++i)
            if (rule[i].fits(what, bytes, nodes)) return &rule[i];
        return nullptr;
    }
};

/// Reads the compact form (zero-terminated; empty: no rules). False on anything unexpected, more
/// than RuleSet::kMax rules included; `out` is then undefined and must not be used.
[[nodiscard]] bool parseRules(const char* text, RuleSet& out);

}  // namespace rdmatune::model
