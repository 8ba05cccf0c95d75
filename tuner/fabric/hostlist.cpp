#include "tuner/fabric/hostlist.hpp"

#include "tuner/base/text.hpp"

namespace rdmatune::fabric {
namespace {

constexpr std::size_t kMostNames = 1'000'000;

Error malformed(std::string_view list) {
    return Error{"'" + std::string(list.substr(0, 200)) +
                 "' is not a list of hosts such as gpu[01-04,07],login1"};
}

/// Splits at commas outside of brackets.
bool splitOutside(std::string_view list, std::vector<std::string_view>& parts) {
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= list.size(); ++i) {
        if (i < list.size() && list[i] == '[' && ++depth > 1) return false;
        if (i < list.size() && list[i] == ']' && --depth < 0) return false;
        if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
        const std::string_view part = trim(list.substr(begin, i - begin));
        if (!part.empty()) parts.push_back(part);
        begin = i + 1;
    }
    return depth == 0;
}

/// "01-03,07" -> "01", "02", "03", "07"
bool expandRanges(std::string_view ranges, std::vector<std::string>& out) {
    for (const std::string_view range : split(ranges, ',')) {
        const auto dash = range.find('-');
        const std::string_view low = range.substr(0, dash);
        const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
        const auto first = parseInt<std::uint64_t>(low);
        const auto last = parseInt<std::uint64_t>(high);
        if (!first || !last || *last < *first || *last - *first >= kMostNames) return false;
        for (std::uint64_t number = *first; number <= *last; ++number) {
            std::string text = std::to_string(number);
            if (text.size() < low.size()) text.insert(0, low.size() - text.size(), '0');
            out.push_back(std::move(text));
            if (out.size() > kMostNames) return false;
        }
    }
    return true;
}

}  // namespace

Result<std::vector<std::string>> expandHosts(std::string_view list) {
    std::vector<std::string_view> parts;
    if (!splitOutside(list, parts)) return malformed(list);
    std::vector<std::string> names;
    for (std::string_view part : parts) {
        std::vector<std::string> built{""};
        while (!part.empty()) {
            const auto open = part.find('[');
            for (std::string& name : built) name += part.substr(0, open);
            if (open == std::string_view::npos) break;
            const auto close = part.find(']', open);
            std::vector<std::string> numbers;
            if (close == std::string_view::npos ||
                !expandRanges(part.substr(open + 1, close - open - 1), numbers))
                return malformed(list);
            if (built.size() * numbers.size() > kMostNames) return malformed(list);
            std::vector<std::string> longer;
            longer.reserve(built.size() * numbers.size());
            for (const std::string& name : built)
                for (const std::string& number : numbers) longer.push_back(name + number);
            built = std::move(longer);
            part.remove_prefix(close + 1);
        }
        if (names.size() + built.size() > kMostNames) return malformed(list);
        names.insert(names.end(), built.begin(), built.end());
    }
    return names;
}

}  // namespace rdmatune::fabric
