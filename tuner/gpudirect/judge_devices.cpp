// What concerns devices and this process rather than a pair: verbs devices, locked memory,
// ordering, virtual machines.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tuner/base/text.hpp"
#include "tuner/gpudirect/gdr_judge.hpp"

namespace rdmatune::gdr {
namespace {

// Without GPUDirect an NCCL rank pins up to 16 channels x 2 connections x about 10 MiB (its three
// protocols' buffers: 4 MiB Simple, 4.7 MiB LL128, 0.5 MiB LL), some 320 MiB, and the queues.
constexpr std::uint64_t kMemlockNeeded = 512ULL << 20;

std::string bytes(std::uint64_t value) {
    if (value == kUnlimited) return "unlimited";
    if (value >= 1ULL << 30) return fmt::format("{} GiB", value >> 30);
    if (value >= 1ULL << 20) return fmt::format("{} MiB", value >> 20);
    return fmt::format("{} KiB", value >> 10);
}

void judgeVerbs(const Node& node, const GdrFacts& facts, Findings& findings) {
    std::vector<std::string> missing, denied;
    int error = 0;
    bool any_opened = false;
    std::string file;
    for (const Hca& hca : node.hcas) {
        const VerbsFacts* verbs = findVerbs(facts, hca);
        if (verbs == nullptr || !usable(hca)) continue;
        if (verbs->device.empty() || verbs->open_errno == ENOENT) {
            missing.push_back(hca.label());
        } else if (verbs->open_errno != 0) {
            denied.push_back(hca.label());
            error = verbs->open_errno;
            file = verbs->device;
        } else {
            any_opened = true;
        }
    }
    // Some opened, others not: a device cgroup or a container gave this process these on purpose.
    const Severity severity = any_opened ? Severity::Warning : Severity::Error;
    if (!missing.empty())
        findings.push_back(
            {"verbs-missing", severity,
             fmt::format("{}: no device in /dev/infiniband.", listed(missing)),
             "In a container: mount /dev/infiniband (docker --device=/dev/infiniband, "
             "Kubernetes: the RDMA device plugin's resource).",
             "modprobe ib_uverbs; install rdma-core."});
    if (!denied.empty())
        findings.push_back(
            {"verbs-denied", severity,
             fmt::format("{}: {} cannot be opened for reading and writing ({}).", listed(denied),
                         file, std::strerror(error)),
             "In a container: ask for the device (Kubernetes: the RDMA device plugin's resource).",
             error == EPERM
                 ? "The device cgroup forbids it: allow /dev/infiniband/* (major 231) for "
                   "jobs, or name the HCA in gres.conf."
                 : "Make /dev/infiniband/uverbs* and rdma_cm mode 0666 (rdma-core's udev "
                   "rules do)."});
}

/// What a job gets, and whether it can raise it by itself.
struct JobLimit {
    std::uint64_t got = kUnlimited;
    std::uint64_t hard = kUnlimited;
    bool slurmd = false;
    [[nodiscard]] bool raisable() const { return !slurmd && hard == kUnlimited; }
};

JobLimit jobLimit(const GdrFacts& facts) {
    // For root outside a job (a health check) what counts is what slurmd can hand on to a job.
    if (facts.root && !facts.in_job && facts.memlock_slurmd)
        return {facts.memlock_slurmd->hard, facts.memlock_slurmd->hard, true};
    if (facts.memlock) return {facts.memlock->soft, facts.memlock->hard, false};
    return {};
}

void judgeMemlock(const GdrFacts& facts, Findings& findings) {
    const JobLimit limit = jobLimit(facts);
    if (limit.got == kUnlimited) return;
    findings.push_back(
        {"memlock-low", memlockStops(facts) ? Severity::Error : Severity::Warning,
         fmt::format(
             "The limit of locked memory is {} (hard limit {}{}); registering memory with an "
             "HCA needs more: unlimited, or {} for each rank at least.",
             bytes(limit.got), bytes(limit.hard), limit.slurmd ? ", of slurmd" : "",
             bytes(kMemlockNeeded)),
         limit.raisable()
             ? "ulimit -l unlimited before the program starts."
             : "Submit from a shell where \"ulimit -l\" is unlimited, or srun --propagate=NONE.",
         "LimitMEMLOCK=infinity in slurmd.service, \"* soft memlock unlimited\" and \"* hard "
         "memlock "
         "unlimited\" in limits.conf, PropagateResourceLimitsExcept=MEMLOCK in slurm.conf."});
}

void judgeModels(const Node& node, Findings& findings) {
    std::vector<std::string> names;
    for (const Gpu& gpu : node.gpus)
        if (withoutRdma(gpu)) names.push_back(fmt::format("{} {}", gpuName(gpu), gpu.model));
    if (names.empty() || std::ranges::none_of(node.hcas, usable)) return;
    findings.push_back({"gpu-without-rdma", Severity::Info,
                        fmt::format("{}: NVIDIA does not offer GPUDirect RDMA on this model; data "
                                    "goes through host memory.",
                                    listed(names)),
                        "Nothing to do: NCCL finds out by itself.",
                        "Nothing to do. Data-centre and workstation GPUs have it."});
}

void judgeOrdering(const Node& node, const GdrFacts& facts, Findings& findings) {
    std::vector<std::string> off;
    for (const Hca& hca : node.hcas)
        if (const PciFacts* device = find(facts, hca.pci);
            device != nullptr && usable(hca) && device->config.relaxed_ordering == false)
            off.push_back(hca.label());
    if (off.empty()) return;
    findings.push_back(
        {"relaxed-ordering-off", Severity::Warning,
         fmt::format("{}: PCIe relaxed ordering is switched off in the device's control register, "
                     "which halves the bandwidth of peer traffic on many hosts.",
                     listed(off)),
         "Use another node, or compare: NCCL_IB_PCI_RELAXED_ORDERING cannot mend it.",
         "Enable \"Relaxed Ordering\" in the BIOS, and on the card: mlxconfig set "
         "PCI_WR_ORDERING=1; until then: setpci -s ADDRESS CAP_EXP+8.w=0010:0010."});
}

void judgeVirtual(const Node& node, const GdrFacts& facts, Findings& findings) {
    if (!facts.hypervisor || node.gpus.empty() || node.hcas.empty()) return;
    std::vector<std::string> without;
    for (const Hca& hca : node.hcas)
        if (const PciFacts* device = find(facts, hca.pci);
            device != nullptr && usable(hca) && device->config.ats == false)
            without.push_back(hca.label());
    findings.push_back(
        {"virtualised", Severity::Info,
         fmt::format(
             "This is a virtual machine: the real PCIe switches, their ACS bits and ATS are "
             "the host's and cannot be seen here{}.",
             without.empty() ? "" : fmt::format("; ATS is off on {}", listed(without))),
         "Compare one HCA's bandwidth with that of all at once (rdma-tune measure); a sum that "
         "does "
         "not grow points to ACS or ATS on the host.",
         "On the host: ATS_ENABLED=true on the HCAs (mlxconfig), DirectTrans+ in ACSCtl of the "
         "switch "
         "ports; give the guest the provider's NCCL topology file (topology = in "
         "rdma-tune.conf)."});
}

void judgeCoherent(const Node& node, const GdrFacts& facts, Findings& findings) {
    // Only the driver of a coherent machine (Grace) checks the topology, and before driver 595 it
    // must be told to allow an HCA on the GPU's own PCIe switch.
    constexpr int kCheckRemoved = 595;
    const auto version = leadingVersion(facts.nvidia_version);
    const auto param = facts.nvidia_params.find("GrdmaPciTopoCheckOverride");
    if (facts.cpu != CpuKind::Arm || !version || version->first >= kCheckRemoved ||
        param == facts.nvidia_params.end() || param->second != "0")
        return;
    bool switched = false;
    for (const auto& row : node.distance)
        for (const Distance distance : row) switched |= distance <= Distance::Pxb;
    if (!switched) return;
    findings.push_back(
        {"coherent-topo-check", Severity::Warning,
         fmt::format(
             "NVIDIA driver {} on a coherent machine checks the PCIe topology before an HCA on "
             "the GPU's switch may use DMA-BUF (GrdmaPciTopoCheckOverride is 0).",
             facts.nvidia_version),
         "Look for \"topology not supported for mapping type FORCE_PCIE\" in dmesg.",
         "options nvidia NVreg_GrdmaPciTopoCheckOverride=1 in modprobe.d, or driver 595 or "
         "newer."});
}

void judgeVisible(const Node& node, const GdrFacts& facts, Findings& findings) {
    std::vector<std::string> unseen;
    if (facts.kernel_release.empty() && facts.modules.empty()) {
        unseen.emplace_back(
            "the running system (drivers, limits, devices): only the topology was given");
    } else {
        int ports = 0;
        for (const auto& [address, device] : facts.pci)
            if (device.present && !device.config.extendedSeen()) ++ports;
        if (ports > 0)
            unseen.push_back(
                fmt::format("the PCIe configuration of {} devices (ACS, ATS{})", ports,
                            facts.root ? "" : ", relaxed ordering; only root sees it"));
        bool nvidia = false;
        for (const Gpu& gpu : node.gpus) nvidia |= gpu.vendor == "nvidia";
        if (nvidia && facts.modules.contains("nvidia") && facts.nvidia_version.empty())
            unseen.emplace_back("the version of NVIDIA's driver (/proc/driver/nvidia/version)");
    }
    if (unseen.empty()) return;
    findings.push_back({"not-visible", Severity::Info,
                        fmt::format("Could not be seen: {}.", join(unseen, "; ")),
                        "Nothing to do in a job; an interactive look as root shows the rest.",
                        "Run rdma-tune doctor as root on the node itself."});
}

}  // namespace

bool memlockStops(const GdrFacts& facts) {
    const JobLimit limit = jobLimit(facts);
    return limit.got < kMemlockNeeded && !limit.raisable();
}

void judgeDevices(const Node& node, const GdrFacts& facts, Findings& findings) {
    judgeVerbs(node, facts, findings);
    // A node without RDMA registers nothing.
    if (std::ranges::any_of(node.hcas, usable)) judgeMemlock(facts, findings);
    judgeModels(node, findings);
    judgeOrdering(node, facts, findings);
    judgeCoherent(node, facts, findings);
    judgeVirtual(node, facts, findings);
    judgeVisible(node, facts, findings);
}

}  // namespace rdmatune::gdr
