#include "tuner/base/cpu_set.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {
constexpr int kMaxCpu = 65535;
}

void CpuSet::addRange(int first, int last) {
    for (int cpu = first; cpu <= last; ++cpu) cpus_.insert(cpu);
}

CpuSet CpuSet::operator&(const CpuSet& other) const {
    CpuSet out;
    std::ranges::set_intersection(cpus_, other.cpus_, std::inserter(out.cpus_, out.cpus_.end()));
    return out;
}

CpuSet CpuSet::operator|(const CpuSet& other) const {
    CpuSet out = *this;
    out.cpus_.insert(other.cpus_.begin(), other.cpus_.end());
    return out;
}

CpuSet CpuSet::operator-(const CpuSet& other) const {
    CpuSet out;
    std::ranges::set_difference(cpus_, other.cpus_, std::inserter(out.cpus_, out.cpus_.end()));
    return out;
}

std::string CpuSet::str() const {
    std::string out;
    for (auto it = cpus_.begin(); it != cpus_.end();) {
        const int first = *it;
        int last = first;
        while (++it != cpus_.end() && *it == last + 1) last = *it;
        if (!out.empty()) out += ',';
        out += std::to_string(first);
        if (last != first) out += '-' + std::to_string(last);
    }
    return out;
}

std::optional<CpuSet> CpuSet::parse(std::string_view text) {
    CpuSet out;
    if (trim(text).empty()) return out;
    for (const auto part : split(trim(text), ',')) {
        const auto dash = part.find('-');
        const auto first = parseInt<int>(part.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : parseInt<int>(part.substr(dash + 1));
        if (!first || !last || *first < 0 || *last < *first || *last > kMaxCpu) return std::nullopt;
        out.addRange(*first, *last);
    }
    return out;
}

std::optional<CpuSet> CpuSet::parseMask(std::string_view text) {
    CpuSet out;
    const auto words = split(trim(text), ',');
    int base = 0;
    for (auto it = words.rbegin(); it != words.rend(); ++it, base += 32) {
        auto word = *it;
        if (word.starts_with("0x") || word.starts_with("0X")) word.remove_prefix(2);
        std::uint32_t bits = 0;
        if (word.size() > 8) return std::nullopt;
        if (word.empty() && words.size() > 1) continue;  // hwloc writes "0xff,,0x0"
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), bits, 16);
        if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
        for (int bit = 0; bit < 32; ++bit)
            if ((bits >> bit & 1U) != 0 && base + bit <= kMaxCpu) out.add(base + bit);
    }
    return out;
}

}  // namespace rdmatune
