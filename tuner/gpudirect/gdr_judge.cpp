#include "tuner/gpudirect/gdr_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

namespace rdmatune {
namespace {

using gdr::find;

/// One GPU with one HCA, and what was found on its way.
struct Candidate {
    GdrPair pair;
    Distance distance = Distance::Unknown;
    bool own = false;  ///< the GPU's nearest usable HCA
    std::vector<PciAddress> redirecting;
};

class Judge {
  public:
    Judge(const Node& node, const GdrFacts& facts) : node_(node), facts_(facts) {}

    Diagnosis run() {
        collect();
        // Without an HCA there is nothing to register memory with.
        for (const Gpu& gpu : node_.gpus)
            if (!candidates_.empty() && !ways_.contains(gpu.vendor))
                ways_[gpu.vendor] = registrationOf(gpu.vendor);
        chooseLevel();
        for (Candidate& candidate : candidates_) decide(candidate);
        sayRedirecting();
        sayTranslating();
        sayDistant();
        gdr::judgeDevices(node_, facts_, out_.findings);
        gdr::judgeLinks(node_, out_.findings);
        chooseSettings();
        std::ranges::stable_sort(out_.findings, std::ranges::greater{}, &Finding::severity);
        for (const Candidate& candidate : candidates_)
            if (candidate.own || candidate.distance <= level_) out_.pairs.push_back(candidate.pair);
        return std::move(out_);
    }

  private:
    gdr::Registration registrationOf(const std::string& vendor) {
        const bool none = std::ranges::all_of(node_.gpus, [&](const Gpu& gpu) {
            return gpu.vendor != vendor || gdr::withoutRdma(gpu);
        });
        if (!none) return gdr::judgeRegistration(node_, facts_, vendor, out_.findings);
        gdr::Registration out;  // no module and no setting would mend it
        out.vendor = vendor;
        out.fallback = {GdrWay::No, "gpu-without-rdma"};
        return out;
    }

    void collect() {
        if (node_.gpus.empty())
            out_.findings.push_back({"gpu-none", Severity::Info, "This node has no GPU.",
                                     "Nothing to do, or ask for a node with GPUs.",
                                     "Nothing to do if it is meant so; else look for the cards in "
                                     "lspci and dmesg."});
        bool any = false;
        for (const Hca& hca : node_.hcas) any |= gdr::usable(hca);
        if (!any)
            out_.findings.push_back(
                {"hca-none", Severity::Info,
                 node_.hcas.empty() ? "This node has no RDMA HCA."
                                    : "No port of this node's HCAs is active with a GID.",
                 "Jobs of one node are not affected; for more, use another node.",
                 node_.hcas.empty() ? "Nothing to do if it is meant so; else look for the cards in "
                                      "lspci, for the driver in dmesg, and load ib_core."
                                    : "Check the cables, the subnet manager (InfiniBand) or the "
                                      "address (RoCE)."});
        for (std::size_t g = 0; g < node_.gpus.size() && g < node_.distance.size(); ++g) {
            const std::size_t first = candidates_.size();
            for (std::size_t h = 0; h < node_.hcas.size() && h < node_.distance[g].size(); ++h) {
                if (!gdr::usable(node_.hcas[h])) continue;
                Candidate candidate;
                candidate.pair.gpu = static_cast<int>(g);
                candidate.pair.hca = static_cast<int>(h);
                candidate.distance = node_.distance[g][h];
                for (const PciAddress& port : gdr::portsBetween(node_.gpus[g], node_.hcas[h]))
                    if (const PciFacts* facts = find(facts_, port);
                        facts != nullptr && gdr::redirects(*facts, find(facts_, node_.hcas[h].pci)))
                        candidate.redirecting.push_back(port);
                candidates_.push_back(std::move(candidate));
            }
            const auto nearest =
                std::ranges::min_element(candidates_.begin() + static_cast<std::ptrdiff_t>(first),
                                         candidates_.end(), {}, &Candidate::distance);
            if (nearest != candidates_.end()) nearest->own = true;
        }
    }

    /// How far NCCL goes with GPUDirect RDMA: PXB by default (its documentation of
    /// NCCL_NET_GDR_LEVEL), the CPU's HCAs on coherent machines (NCCL_NET_GDR_C2C), and PHB where
    /// every GPU's own HCA is no nearer and the CPU is known to be a good PCIe switch.
    void chooseLevel() {
        const auto owns = [this](auto holds) {
            return std::ranges::all_of(candidates_,
                                       [&](const Candidate& c) { return !c.own || holds(c); });
        };
        const bool all_phb = !candidates_.empty() && owns([&](const Candidate& c) {
            return c.distance == Distance::Phb && node_.gpus[at(c.pair.gpu)].vendor == "nvidia" &&
                   works(wayOf(c).way) && !translating(c);
        });
        if (coherent()) {
            // NCCL calls the whole NUMA node PHB, whichever of its host bridges a device is at.
            level_ = Distance::Node;
        } else if (all_phb && facts_.cpu == CpuKind::AmdZen && !facts_.hypervisor && !node_.flat) {
            level_ = Distance::Phb;
            out_.env.push_back({"NCCL_NET_GDR_LEVEL", "PHB",
                                "every GPU's nearest HCA is on the same AMD host bridge, where "
                                "NCCL by itself would "
                                "copy through host memory"});
        }
    }

    [[nodiscard]] static std::size_t at(int index) { return static_cast<std::size_t>(index); }
    [[nodiscard]] static bool works(GdrWay way) {
        return way == GdrWay::Dmabuf || way == GdrWay::Peermem;
    }
    [[nodiscard]] gdr::Way wayOf(const Candidate& c) const {
        return ways_.at(node_.gpus[at(c.pair.gpu)].vendor)
            .of(gdr::findVerbs(facts_, node_.hcas[at(c.pair.hca)]));
    }
    [[nodiscard]] bool translating(const Candidate& c) const {
        return translates(node_.gpus[at(c.pair.gpu)].pci) ||
               translates(node_.hcas[at(c.pair.hca)].pci);
    }
    /// NVIDIA's GPUDirect RDMA guide ("Supported Systems") asks for physical addresses that are the
    /// same for all devices: no IOMMU, or one that passes through. Arm's coherent machines
    /// translate by design and are supported so.
    [[nodiscard]] bool translates(const std::optional<PciAddress>& address) const {
        const PciFacts* device = find(facts_, address);
        return facts_.cpu != CpuKind::Arm && device != nullptr &&
               device->iommu_type.starts_with("DMA");
    }

    /// Grace, where GPU and CPU share memory over NVLink-C2C. Another Arm server's GPUs are
    /// ordinary ones.
    [[nodiscard]] bool coherent() const {
        return std::ranges::any_of(node_.gpus, [this](const Gpu& gpu) {
            // A saved topology does not tell the CPU; then the GPU's name must.
            const bool told = facts_.cpu == CpuKind::Arm ||
                              (facts_.cpu == CpuKind::Unknown && !gpu.model.empty());
            return told && gdr::onGrace(gpu);
        });
    }

    void decide(Candidate& c) {
        const gdr::Way way = wayOf(c);
        c.pair.way = way.way;
        c.pair.because = way.because;
        const VerbsFacts* verbs = gdr::findVerbs(facts_, node_.hcas[at(c.pair.hca)]);
        const auto no = [&](const char* code) {
            c.pair.way = GdrWay::No;
            c.pair.because = code;
        };
        if (way.way == GdrWay::No) return;
        if (gdr::withoutRdma(node_.gpus[at(c.pair.gpu)])) return no("gpu-without-rdma");
        if (c.distance == Distance::Unknown) {
            c.pair.way = GdrWay::Unknown;
            c.pair.because = "not-visible";
            return;
        }
        if (verbs != nullptr && verbs->device.empty())
            no("verbs-missing");
        else if (verbs != nullptr && verbs->open_errno != 0)
            no(verbs->open_errno == ENOENT ? "verbs-missing" : "verbs-denied");
        else if (gdr::memlockStops(facts_))
            no("memlock-low");
        else if (c.distance > level_)
            no(node_.flat ? "topology-flat" : "gdr-distance");
        else if (!c.redirecting.empty())
            no("acs-redirect");
        else if (translating(c))
            no("iommu-translating");
    }

    void sayRedirecting() {
        std::map<PciAddress, std::vector<std::string>> by_port;
        for (const Candidate& c : candidates_)
            for (const PciAddress& port : c.redirecting)
                by_port[port].push_back(
                    fmt::format("GPU {} - {}", c.pair.gpu, node_.hcas[at(c.pair.hca)].label()));
        for (const auto& [port, pairs] : by_port) {
            const std::uint16_t acs = facts_.pci.at(port).config.acs.value_or(0);
            out_.findings.push_back(
                {"acs-redirect", Severity::Error,
                 fmt::format(
                     "Switch port {} sends peer traffic up to the root complex (ACSCtl {:#06x}: "
                     "{}): {}.",
                     port.str(), acs, acsRedirectNames(acs), gdr::listed(pairs)),
                 "Use another node, or set NCCL_NET_GDR_LEVEL=LOC and compare; tell the "
                 "administrator.",
                 fmt::format(
                     "setpci -s {} ECAP_ACS+6.w=0000, at every boot; or switch ACS off in the "
                     "BIOS. Keep it only where virtual machines need the isolation.",
                     port.str())});
        }
    }

    void sayTranslating() {
        std::set<std::string> names;
        for (const Candidate& c : candidates_) {
            if (c.pair.because != "iommu-translating") continue;
            const Gpu& gpu = node_.gpus[at(c.pair.gpu)];
            const Hca& hca = node_.hcas[at(c.pair.hca)];
            if (translates(gpu.pci)) names.insert(gdr::gpuName(gpu));
            if (translates(hca.pci)) names.insert(hca.label());
        }
        if (names.empty()) return;
        out_.findings.push_back(
            {"iommu-translating", Severity::Error,
             fmt::format("The IOMMU translates the addresses of {}: GPUDirect RDMA needs physical "
                         "addresses, or goes through the root complex.",
                         gdr::listed({names.begin(), names.end()})),
             "Use another node and tell the administrator.",
             facts_.iommu_pt
                 ? "iommu=pt is on the kernel's command line but these groups are not in "
                   "pass-through: "
                   "write identity to /sys/kernel/iommu_groups/N/type, or switch the IOMMU off."
                 : "Boot with iommu=pt (and intel_iommu=on or amd_iommu=on if virtual machines "
                   "need "
                   "it), or switch the IOMMU off in the BIOS."});
    }

    void sayDistant() {
        if (node_.flat) {
            if (node_.gpus.empty() || candidates_.empty()) return;
            out_.findings.push_back(
                {"topology-flat", Severity::Warning,
                 "The virtual machine hides its PCIe switches, so that NCCL takes every HCA for "
                 "distant "
                 "and leaves GPUDirect RDMA off.",
                 "NCCL_TOPO_FILE=FILE with the provider's topology of this machine type.",
                 "topology = PATTERN=FILE in rdma-tune.conf, and NCCL_TOPO_FILE in "
                 "/etc/nccl.conf."});
            return;
        }
        std::map<Distance, std::vector<std::string>> by_distance;
        for (const Candidate& c : candidates_)
            if (c.own && c.distance > level_ && c.distance != Distance::Unknown)
                by_distance[c.distance].push_back(
                    fmt::format("GPU {} - {}", c.pair.gpu, node_.hcas[at(c.pair.hca)].label()));
        for (const auto& [distance, pairs] : by_distance)
            out_.findings.push_back(
                {"gdr-distance", Severity::Info,
                 fmt::format(
                     "{}: the nearest HCA is {} away, beyond {} up to which NCCL uses GPUDirect "
                     "RDMA.",
                     gdr::listed(pairs), toString(distance), toString(level_)),
                 distance == Distance::Phb ? "NCCL_NET_GDR_LEVEL=PHB may help; compare, on many "
                                             "CPUs host memory is faster."
                                           : "Nothing to do: NCCL goes through host memory here.",
                 "Put each GPU and its HCA under one PCIe switch, if the machine has one."});
    }

    /// Settings that follow from the findings. Where a finding leaves doubt, nothing is set.
    void chooseSettings() {
        bool unregistered = false, other = false, redirected = false, clean_pxb = false;
        bool redirected_pix = false, clean_pix = false, needs_dmabuf = false;
        for (const Candidate& c : candidates_) {
            if (c.own) (c.pair.because == "peermem-unregistered" ? unregistered : other) = true;
            if (c.pair.way == GdrWay::Dmabuf)
                needs_dmabuf |= ways_.at(node_.gpus[at(c.pair.gpu)].vendor).needs_env;
            if (c.distance > Distance::Pxb) continue;
            const bool acs = !c.redirecting.empty();
            (acs ? redirected : clean_pxb) = true;
            if (c.distance == Distance::Pix) (acs ? redirected_pix : clean_pix) = true;
        }
        if (needs_dmabuf)
            out_.env.push_back(
                {"NCCL_DMABUF_ENABLE", "1",
                 "DMA-BUF is the only way to GPU memory here, and RCCL does not take it by "
                 "itself in every release"});
        if (unregistered && !other)
            out_.env.push_back(
                {"NCCL_NET_GDR_LEVEL", "LOC",
                 "peermem-unregistered: NCCL sees the module, tries, and the registration "
                 "fails"});
        // With the detour the true distance is PHB, and there NCCL's own rule is to copy through
        // host memory ("CPUs are very bad PCI switches", nccl#465). AMD's are good ones, and in a
        // virtual machine what is seen is not the real switch: leave both alone.
        else if (redirected && facts_.cpu != CpuKind::AmdZen && facts_.cpu != CpuKind::Arm &&
                 !facts_.hypervisor) {
            if (!clean_pxb)
                out_.env.push_back(
                    {"NCCL_NET_GDR_LEVEL", "LOC",
                     "acs-redirect: every way between a GPU and an HCA leads through the "
                     "root complex"});
            else if (clean_pix && !redirected_pix)
                out_.env.push_back(
                    {"NCCL_NET_GDR_LEVEL", "PIX",
                     "acs-redirect: ways over several switches lead through the root "
                     "complex"});
        }
    }

    const Node& node_;
    const GdrFacts& facts_;
    Diagnosis out_;
    std::vector<Candidate> candidates_;
    std::map<std::string, gdr::Registration> ways_;
    Distance level_ = Distance::Pxb;
};

}  // namespace

Diagnosis judgeGdr(const Node& node, const GdrFacts& facts) {
    return Judge(node, facts).run();
}

}  // namespace rdmatune
