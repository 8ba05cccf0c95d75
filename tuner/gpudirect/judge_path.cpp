// The way between one GPU and one HCA, and the small helpers that all judges share.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "tuner/gpudirect/gdr_judge.hpp"

namespace rdmatune::gdr {

const PciFacts* find(const GdrFacts& facts, const std::optional<PciAddress>& address) {
    if (!address) return nullptr;
    const auto found = facts.pci.find(*address);
    return found == facts.pci.end() ? nullptr : &found->second;
}

const VerbsFacts* findVerbs(const GdrFacts& facts, const Hca& hca) {
    const auto found = facts.verbs.find(hca.name);
    return found == facts.verbs.end() ? nullptr : &found->second;
}

std::string gpuName(const Gpu& gpu) {
    return gpu.pci ? fmt::format("GPU {} ({})", gpu.index, gpu.pci->str())
                   : fmt::format("GPU {}", gpu.index);
}

std::string listed(const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 6;
    std::string out;
    const std::size_t shown = names.size() > kMost + 1 ? kMost : names.size();
    for (std::size_t i = 0; i < shown; ++i) {
        if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
        out += names[i];
    }
    if (shown < names.size()) out += fmt::format(" and {} more", names.size() - shown);
    return out;
}

bool usable(const Hca& hca) {
    return (hca.state == PortState::Active || hca.state == PortState::Unknown) &&
           (!hca.gids_known || !hca.gids.empty());
}

bool onGrace(const Gpu& gpu) {
    if (gpu.model.empty()) return true;
    return std::ranges::any_of(std::array{"GH200", "GB200", "GB300"}, [&](const char* chip) {
        return gpu.model.find(chip) != std::string::npos;
    });
}

bool withoutRdma(const Gpu& gpu) {
    return gpu.vendor == "nvidia" &&
           (gpu.model.find("GeForce") != std::string::npos || gpu.model.ends_with("GB10"));
}

std::vector<PciAddress> portsBetween(const Gpu& gpu, const Hca& hca) {
    const auto [g, h] = std::ranges::mismatch(gpu.pci_path, hca.pci_path);
    if (g == gpu.pci_path.begin()) return {};
    std::vector<PciAddress> out(g, gpu.pci_path.end());
    out.insert(out.end(), h, hca.pci_path.end());
    return out;
}

bool redirects(const PciFacts& port, const PciFacts* hca) {
    if (!port.config.acs || (*port.config.acs & kAcsRedirect) == 0) return false;
    // With ATS the HCA sends addresses that are translated already, and Direct Translated P2P lets
    // those pass: how virtual machines keep both isolation and speed.
    return !((*port.config.acs & kAcsDirectTranslated) != 0 && hca != nullptr &&
             hca->config.ats == true);
}

}  // namespace rdmatune::gdr
