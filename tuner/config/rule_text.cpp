#include "tuner/config/rule_text.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "tuner/base/text.hpp"
#include "tuner/model/rules.hpp"
#include "tuner/profile/profile.hpp"

namespace rdmatune {
namespace {

using model::kAny;
using model::kLeaveToNccl;
using model::Rule;

template <std::size_t N>
std::optional<std::uint8_t> indexOf(const char* const (&words)[N], std::string_view word) {
    for (std::size_t i = 0; i < N; ++i)
        if (word == words[i]) return static_cast<std::uint8_t>(i);
    return std::nullopt;
}

template <std::size_t N>
std::string listed(const char* const (&words)[N]) {
    return join(std::vector<std::string_view>(words, words + N), ", ");
}

/// 65536, 64K, 1M, 2G; nothing for anything else.
std::optional<std::uint64_t> parseSize(std::string_view text) {
    std::uint64_t unit = 1;
    if (!text.empty()) {
        const char last = text.back();
        const int shift = last == 'K' || last == 'k'   ? 10
                          : last == 'M' || last == 'm' ? 20
                          : last == 'G' || last == 'g' ? 30
                                                       : 0;
        if (shift != 0) {
            unit = std::uint64_t{1} << shift;
            text.remove_suffix(1);
        }
    }
    const auto number = parseInt<std::uint64_t>(text);
    if (!number || *number > (UINT64_MAX >> 1) / unit) return std::nullopt;
    return *number * unit;
}

struct Range {
    std::uint64_t from = 0;
    std::optional<std::uint64_t> to;
};

/// VALUE, FROM-TO or FROM-.
template <class Parse>
std::optional<Range> parseRange(std::string_view text, Parse parse) {
    const auto dash = text.find('-');
    const auto from = parse(text.substr(0, dash));
    if (!from) return std::nullopt;
    if (dash == std::string_view::npos) return Range{*from, from};
    if (dash + 1 == text.size()) return Range{*from, std::nullopt};
    const auto to = parse(text.substr(dash + 1));
    if (!to || *to < *from) return std::nullopt;
    return Range{*from, to};
}

Error expected(std::string_view key, std::string_view what, std::string_view value) {
    return Error{"rule: " + std::string(key) + "=" + std::string(value) + ": expected " +
                 std::string(what)};
}

Status takePair(Rule& rule, std::string_view key, std::string_view value) {
    const std::string word = lower(value);
    if (key == "collective") {
        const auto index = indexOf(model::kCollectiveNames, word);
        if (!index) return expected(key, "one of " + listed(model::kCollectiveNames), value);
        rule.collective = *index;
    } else if (key == "algorithm") {
        const auto index =
            word == "nccl" ? std::optional(kLeaveToNccl) : indexOf(model::kAlgorithmNames, word);
        if (!index)
            return expected(key, "one of " + listed(model::kAlgorithmNames) + ", nccl", value);
        rule.algorithm = *index;
    } else if (key == "protocol") {
        const auto index = indexOf(model::kProtocolNames, word);
        if (!index) return expected(key, "one of " + listed(model::kProtocolNames), value);
        rule.protocol = *index;
    } else if (key == "bytes") {
        const auto range = parseRange(value, parseSize);
        if (!range)
            return expected(key, "a size or a range of sizes, such as 64K, 0-64K or 1M-", value);
        rule.bytes_from = range->from;
        rule.bytes_to = range->to.value_or(UINT64_MAX);
    } else if (key == "nodes") {
        const auto range =
            parseRange(value, [](std::string_view n) -> std::optional<std::uint64_t> {
                const auto number = parseInt<std::uint32_t>(n);
                if (!number || *number == 0 || *number > 1000000) return std::nullopt;
                return *number;
            });
        if (!range)
            return expected(key, "a number of nodes or a range, such as 4, 2-4 or 8-", value);
        rule.nodes_from = static_cast<std::uint32_t>(range->from);
        rule.nodes_to = static_cast<std::uint32_t>(range->to.value_or(UINT32_MAX));
    } else {
        return Error{"rule: unknown key \"" + std::string(key) +
                     "\"; expected collective, bytes, nodes, algorithm or protocol"};
    }
    return Done{};
}

std::string name(const char* const* words, std::uint8_t index) {
    return index == kAny ? "*" : index == kLeaveToNccl ? "nccl" : words[index];
}

std::string compact(const Rule& rule) {
    const auto upper = [](std::uint64_t value, std::uint64_t unlimited) {
        return value == unlimited ? std::string("*") : std::to_string(value);
    };
    return name(model::kCollectiveNames, rule.collective) + ":" + std::to_string(rule.bytes_from) +
           "-" + upper(rule.bytes_to, UINT64_MAX) + ":" + std::to_string(rule.nodes_from) + "-" +
           upper(rule.nodes_to, UINT32_MAX) + ":" + name(model::kAlgorithmNames, rule.algorithm) +
           ":" + name(model::kProtocolNames, rule.protocol);
}

std::string sizeText(std::uint64_t bytes) {
    if (bytes != 0 && bytes % (1U << 30) == 0) return std::to_string(bytes >> 30) + "G";
    if (bytes != 0 && bytes % (1U << 20) == 0) return std::to_string(bytes >> 20) + "M";
    if (bytes != 0 && bytes % (1U << 10) == 0) return std::to_string(bytes >> 10) + "K";
    return std::to_string(bytes);
}

}  // namespace

Result<std::string> compileRule(std::string_view text) {
    Rule rule;
    std::set<std::string> seen;
    std::string blanks_equal(text);
    for (char& c : blanks_equal)
        if (c == '\t') c = ' ';
    for (const std::string_view pair : split(blanks_equal, ' ')) {
        if (pair.empty()) continue;
        const auto equals = pair.find('=');
        if (equals == std::string_view::npos || equals == 0 || equals + 1 == pair.size())
            return Error{"rule: \"" + std::string(pair) +
                         "\": expected KEY=VALUE pairs separated by blanks, such as "
                         "\"collective=allreduce bytes=0-64K algorithm=tree\""};
        const std::string key = lower(pair.substr(0, equals));
        if (!seen.insert(key).second)
            return Error{"rule: \"" + key + "\" is given twice; expected it once"};
        if (Status status = takePair(rule, key, pair.substr(equals + 1)); !status)
            return status.error();
    }
    if (rule.algorithm == kAny && rule.protocol == kAny)
        return Error{"rule: pins nothing; expected algorithm= or protocol="};
    if (rule.algorithm == kLeaveToNccl && rule.protocol != kAny)
        return Error{
            "rule: algorithm=nccl leaves the whole choice to NCCL; expected no protocol= beside "
            "it"};
    if (rule.protocol == static_cast<std::uint8_t>(model::Protocol::LL) &&
        rule.bytes_to > model::kLargestPinnedLl)
        return Error{
            "rule: protocol=ll loses half the bandwidth; expected bytes= with an upper end of at "
            "most 256K "
            "beside it"};
    const bool gather = rule.collective != kAny &&
                        rule.collective != static_cast<std::uint8_t>(model::Collective::AllReduce);
    if (gather && rule.algorithm == static_cast<std::uint8_t>(model::Algorithm::Tree))
        return Error{
            "rule: NCCL has algorithm=tree for collective=allreduce only; expected another "
            "algorithm"};
    return compact(rule);
}

Result<std::string> compileRules(const std::vector<std::string>& rules,
                                 const std::vector<std::string>& origins) {
    std::string all;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        const std::string where = i < origins.size() && !origins[i].empty()
                                      ? origins[i]
                                      : "rule " + std::to_string(i + 1);
        const Result<std::string> one = compileRule(rules[i]);
        if (!one) return within(where, one.error());
        const std::string longer = all.empty() ? one.value() : all + "/" + one.value();
        if (i >= model::RuleSet::kMax || longer.size() >= kProfileRulesMax)
            return Error{where + ": a profile has no room for this rule; expected at most " +
                         std::to_string(model::RuleSet::kMax) + " rules and " +
                         std::to_string(kProfileRulesMax - 1) +
                         " characters in their compact form"};
        all = longer;
    }
    return all;
}

std::vector<std::string> describeRules(std::string_view text) {
    std::vector<std::string> lines;
    const auto set = std::make_unique<model::RuleSet>();
    if (!model::parseRules(std::string(text).c_str(), *set))
        return {"unreadable rules: \"" + std::string(text) + "\""};
    for (std::size_t i = 0; i < set->count; ++i) {
        const Rule& rule = set->rule[i];
        std::string line =
            rule.collective == kAny ? "any collective" : model::kCollectiveNames[rule.collective];
        line += ", " + sizeText(rule.bytes_from) + " bytes";
        line += rule.bytes_to == UINT64_MAX ? " and more" : " to " + sizeText(rule.bytes_to);
        line += ", " + std::to_string(rule.nodes_from);
        line += rule.nodes_to == UINT32_MAX ? " nodes and more: "
                                            : " to " + std::to_string(rule.nodes_to) + " nodes: ";
        if (rule.algorithm == kLeaveToNccl)
            line += "left to NCCL";
        else if (rule.algorithm == kAny)
            line += "any algorithm";
        else
            line += model::kAlgorithmNames[rule.algorithm];
        if (rule.protocol != kAny) line += std::string(", ") + model::kProtocolNames[rule.protocol];
        lines.push_back(line);
    }
    return lines;
}

}  // namespace rdmatune
