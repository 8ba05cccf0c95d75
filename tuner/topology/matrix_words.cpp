#include "tuner/topology/matrix_words.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {

/// How an escape character looks after a log, a browser or an editor has written it down.
constexpr std::array<std::string_view, 8> kEscapes = {
    "\x1b", "\\u001b", "\\u001B", "\\x1b", "\\033", "\\e", "^[", "\xe2\x90\x9b"};

/// The length of "[", numbers and a final letter at the start; 0 when there is none. Without its
/// escape character only a colour ("[4m", "[0m") is taken for one.
std::size_t controlLength(std::string_view text, bool escaped) {
    if (!text.starts_with('[')) return 0;
    std::size_t i = 1;
    const char last = escaped ? '?' : ';';  // what may stand before the letter, by ECMA-48
    while (i < text.size() && text[i] >= '0' && text[i] <= last) ++i;
    if (i == text.size()) return 0;
    if (text[i] == 'm') return i + 1;
    return escaped && text[i] >= '@' && text[i] <= '~' ? i + 1 : 0;
}

std::string withoutColours(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        std::size_t drop = 0;
        for (const std::string_view escape : kEscapes)
            if (drop == 0 && text.starts_with(escape))
                if (const auto length = controlLength(text.substr(escape.size()), true))
                    drop = escape.size() + length;
        if (drop == 0) drop = controlLength(text, false);
        if (drop == 0 && text.front() == '\x1b') drop = 1;
        if (drop == 0) out += text.front();
        text.remove_prefix(drop == 0 ? 1 : drop);
    }
    return out;
}

/// Bytes of a blank beyond ASCII at the start (browsers put U+00A0 where there were several); 0:
/// none.
std::size_t wideBlank(std::string_view text) {
    for (const std::string_view blank :
         {"\xc2\xa0", "\xe2\x80\xaf", "\xe3\x80\x80", "\xef\xbb\xbf"})
        if (text.starts_with(blank)) return blank.size();
    // U+2000 to U+200B: spaces of all widths, the last of them none.
    if (text.size() >= 3 && text.starts_with("\xe2\x80") &&
        static_cast<unsigned char>(text[2]) <= 0x8bU)
        return 3;
    return 0;
}

std::vector<std::string> wordsOf(std::string_view line) {
    std::vector<std::string> out;
    std::string word;
    const auto finish = [&] {
        // A mail's quote marks are words of their own or stand before the first one.
        while (out.empty() && word.starts_with('>')) word.erase(0, 1);
        if (!word.empty()) out.push_back(std::move(word));
        word.clear();
    };
    while (!line.empty()) {
        const char c = line.front();
        const std::size_t wide = wideBlank(line);
        if (wide > 0 || c == ' ' || c == '\t' || c == '\r' || c == '|' || c == '`')
            finish();
        else
            word += c;
        line.remove_prefix(wide > 0 ? wide : 1);
    }
    finish();
    return out;
}

void replaceAll(std::string& text, std::string_view from, char to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
        text.replace(at, from.size(), 1, to);
}

}  // namespace

std::vector<MatrixLine> matrixLines(std::string_view text) {
    std::string plain = withoutColours(text);
    constexpr std::string_view kWrittenEnd = "\\nGPU";
    if (plain.find(kWrittenEnd) != std::string::npos) {
        replaceAll(plain, "\\n", '\n');
        replaceAll(plain, "\\t", '\t');
    }
    std::vector<MatrixLine> out;
    int number = 0;
    for (const std::string_view line : split(plain, '\n')) {
        ++number;
        if (auto words = wordsOf(line.substr(0, line.find('#'))); !words.empty())
            out.push_back({number, std::move(words)});
    }
    return out;
}

}  // namespace rdmatune
