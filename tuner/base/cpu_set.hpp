// A set of logical CPUs, as the kernel numbers them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rdmatune {

/// Logical CPU numbers. Text form: "0-11,24,26" ("" when empty), as in /sys and taskset.
class CpuSet {
  public:
    CpuSet() = default;
    explicit CpuSet(std::set<int> cpus) : cpus_(std::move(cpus)) {}

    void add(int cpu) { cpus_.insert(cpu); }
    void addRange(int first, int last);
    [[nodiscard]] bool contains(int cpu) const { return cpus_.contains(cpu); }
    [[nodiscard]] bool empty() const { return cpus_.empty(); }
    [[nodiscard]] std::size_t size() const { return cpus_.size(); }
    [[nodiscard]] std::vector<int> list() const { return {cpus_.begin(), cpus_.end()}; }
    [[nodiscard]] CpuSet operator&(const CpuSet& other) const;
    [[nodiscard]] CpuSet operator|(const CpuSet& other) const;
    [[nodiscard]] CpuSet operator-(const CpuSet& other) const;
    bool operator==(const CpuSet&) const = default;

    [[nodiscard]] std::string str() const;
    /// Reads the text form. Nothing for malformed text or a CPU number above 65535.
    [[nodiscard]] static std::optional<CpuSet> parse(std::string_view text);
    /// Reads comma-separated 32-bit hexadecimal words, highest first, as in NCCL's XML and
    /// /sys/.../cpumap ("00000000,00ffffff"), with or without "0x".
    [[nodiscard]] static std::optional<CpuSet> parseMask(std::string_view text);

  private:
    std::set<int> cpus_;
};

}  // namespace rdmatune
