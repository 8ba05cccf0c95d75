// Small text helpers that the standard library of C++20 does not have.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rdmatune {

/// Without leading and trailing blanks, tabs and line ends.
[[nodiscard]] inline std::string_view trim(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const auto first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// All parts between separators, empty ones included; one empty part for empty text.
[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const auto at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

/// A whole decimal number and nothing else.
template <class T>
[[nodiscard]] std::optional<T> parseInt(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 10);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// A whole decimal fraction ("1.5", "2e3") and nothing else; independent of the locale.
[[nodiscard]] inline std::optional<double> parseReal(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

[[nodiscard]] inline std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

/// 1/true/yes/on and 0/false/no/off in any letter case.
[[nodiscard]] inline std::optional<bool> parseBool(std::string_view text) {
    const std::string t = lower(trim(text));
    if (t == "1" || t == "true" || t == "yes" || t == "on") return true;
    if (t == "0" || t == "false" || t == "no" || t == "off") return false;
    return std::nullopt;
}

template <class Parts>
[[nodiscard]] std::string join(const Parts& parts, std::string_view separator) {
    std::string out;
    bool first = true;
    for (const auto& part : parts) {
        if (!first) out += separator;
        first = false;
        out += part;
    }
    return out;
}

/// Lines "NAME: TEXT" as one, the names of equal texts together: "a, b: why; c: other".
[[nodiscard]] inline std::string joinAlike(const std::vector<std::string>& lines) {
    std::vector<std::pair<std::string_view, std::string>> texts;  // in the order of appearance
    for (const std::string_view line : lines) {
        const auto colon = line.find(": ");
        const auto text = colon == std::string_view::npos ? line : line.substr(colon + 2);
        const auto name = colon == std::string_view::npos ? "" : line.substr(0, colon);
        const auto known = std::find_if(texts.begin(), texts.end(),
                                        [&](const auto& one) { return one.first == text; });
        if (known == texts.end())
            texts.emplace_back(text, name);
        else if (!name.empty())
            known->second.append(", ").append(name);
    }
    std::string out;
    for (const auto& [text, names] : texts) {
        out.append(out.empty() ? "" : "; ").append(names).append(names.empty() ? "" : ": ");
        out += text;
    }
    return out;
}

}  // namespace rdmatune
