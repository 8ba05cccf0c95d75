// Can GPU memory be registered with an HCA at all: drivers and kernel, not the way between them.
#include <fmt/format.h>

#include <algorithm>

#include "tuner/gpudirect/gdr_judge.hpp"

namespace rdmatune::gdr {
namespace {

// NVIDIA's GPU Operator documentation, "GPUDirect RDMA": DMA-BUF needs the open kernel modules,
// CUDA 11.7 (driver 515) and Linux 5.12; nvidia_peermem comes with driver 470 and later.
constexpr int kDmabufDriver = 515;
constexpr int kPeermemDriver = 470;
constexpr std::pair kDmabufKernel{5, 12};

constexpr const char* kTell = "Nothing in the job can mend it: tell the administrator.";

/// Names of the vendor's GPUs that are bound to `driver`.
std::vector<std::string> boundTo(const Node& node, const GdrFacts& facts, std::string_view vendor,
                                 std::string_view driver) {
    std::vector<std::string> out;
    for (const Gpu& gpu : node.gpus)
        if (const PciFacts* device = find(facts, gpu.pci);
            gpu.vendor == vendor && device != nullptr && device->driver == driver)
            out.push_back(gpuName(gpu));
    return out;
}

std::optional<bool> kernelHasDmabuf(const GdrFacts& facts) {
    const auto version = leadingVersion(facts.kernel_release);
    if (!version) return std::nullopt;
    return *version >= kDmabufKernel;
}

/// HCAs whose driver refused DMA-BUF when it was asked.
std::vector<std::string> refusing(const Node& node, const GdrFacts& facts) {
    std::vector<std::string> out;
    for (const Hca& hca : node.hcas)
        if (const VerbsFacts* verbs = findVerbs(facts, hca);
            verbs != nullptr && usable(hca) && verbs->dmabuf == DmabufProbe::NotSupported)
            out.push_back(hca.label());
    return out;
}

/// A driver that cannot do it. True when one was found.
bool judgeDriver(const Node& node, const GdrFacts& facts, std::string_view vendor,
                 const std::string& module, Registration& out, Findings& findings) {
    const auto decide = [&](const char* code) { out.fallback = {GdrWay::No, code}; };
    if (const auto bound = boundTo(node, facts, vendor, "vfio-pci"); !bound.empty()) {
        findings.push_back(
            {"driver-vfio", Severity::Error,
             fmt::format("{}: bound to vfio-pci, set aside for a virtual machine, not "
                         "usable here.",
                         listed(bound)),
             "Use another node.",
             fmt::format("Bind the GPU to {} again (driverctl unset-override), or take "
                         "it out of gres.conf.",
                         module)});
        decide("driver-vfio");
        return true;
    }
    const auto nouveau = boundTo(node, facts, vendor, "nouveau");
    const bool loaded =
        facts.modules.contains(module) || (vendor == "nvidia" && !facts.nvidia_version.empty());
    if (!nouveau.empty() || (vendor == "nvidia" && !loaded && facts.modules.contains("nouveau"))) {
        findings.push_back(
            {"driver-nouveau", Severity::Error,
             nouveau.empty()
                 ? "The nouveau driver is loaded instead of NVIDIA's."
                 : fmt::format("{}: bound to nouveau, which has no CUDA.", listed(nouveau)),
             "Use another node and tell the administrator.",
             "Blacklist nouveau (modprobe.d: \"blacklist nouveau\", \"options nouveau "
             "modeset=0\"), rebuild the initramfs, install NVIDIA's driver, reboot."});
        decide("driver-nouveau");
        return true;
    }
    if (loaded) return false;
    findings.push_back(
        {"driver-missing", Severity::Error,
         fmt::format("The kernel module {} is not loaded, so the {} GPUs of this node "
                     "cannot be used.",
                     module, vendor),
         "Use another node and tell the administrator.",
         fmt::format("Install and load the driver (modprobe {}); look for its reason "
                     "in dmesg.",
                     module)});
    decide("driver-missing");
    return true;
}

/// Why there is no DMA-BUF; each is one finding, and one mended is enough only if it is the last.
void explainDmabuf(const Node& node, const GdrFacts& facts, Findings& findings) {
    if (kernelHasDmabuf(facts) == false)
        findings.push_back(
            {"kernel-old", Severity::Warning,
             fmt::format("Linux {} is older than {}.{}, the first with DMA-BUF for RDMA.",
                         facts.kernel_release, kDmabufKernel.first, kDmabufKernel.second),
             kTell, "Update the kernel to use DMA-BUF, or load nvidia_peermem."});
    const auto version = leadingVersion(facts.nvidia_version);
    if (version && version->first < kDmabufDriver)
        findings.push_back({"driver-old",
                            version->first < kPeermemDriver ? Severity::Error : Severity::Warning,
                            fmt::format("NVIDIA driver {} is older than {}, the first that exports "
                                        "DMA-BUF{}.",
                                        facts.nvidia_version, kDmabufDriver,
                                        version->first < kPeermemDriver
                                            ? fmt::format(", and than {}, the first with "
                                                          "nvidia_peermem",
                                                          kPeermemDriver)
                                            : ""),
                            kTell, "Update NVIDIA's driver."});
    else if (facts.nvidia_open == false && !facts.nvidia_version.empty())
        findings.push_back(
            {"driver-closed", Severity::Warning,
             fmt::format("NVIDIA driver {} runs with the closed kernel modules, which "
                         "do not export DMA-BUF.",
                         facts.nvidia_version),
             kTell,
             "Install the open kernel modules (Turing and later GPUs), or load "
             "nvidia_peermem."});
    if (const auto names = refusing(node, facts); !names.empty())
        findings.push_back(
            {"dmabuf-hca", Severity::Warning,
             fmt::format("{}: the HCA's driver does not register DMA-BUF memory.", listed(names)),
             "In a container: an image with rdma-core 34 or newer. Otherwise tell the "
             "administrator.",
             "Update the HCA's driver (MLNX_OFED or DOCA-OFED, or a newer kernel) and "
             "rdma-core to 34 or newer."});
}

void judgePeermem(const Node& node, const GdrFacts& facts, Registration& out, Findings& findings) {
    const bool registered =
        facts.memory_peers.contains("nv_mem") || facts.memory_peers.contains("nv_mem_nc");
    const bool loaded =
        facts.modules.contains("nvidia_peermem") || facts.modules.contains("nv_peer_mem");
    if (registered) {
        out.fallback = {GdrWay::Peermem, ""};
        return;
    }
    const auto version = leadingVersion(facts.nvidia_version);
    const char* code = !loaded                      ? "peermem-missing"
                       : facts.peermem_uses_ib_core ? "peermem-unproven"
                                                    : "peermem-unregistered";
    if (!loaded && version && version->first < kPeermemDriver) code = "driver-old";
    out.fallback = {loaded && facts.peermem_uses_ib_core ? GdrWay::Unknown : GdrWay::No, code};
    if (out.dmabuf && refusing(node, facts).empty()) return;  // not needed
    const std::string user =
        "Nothing in the job can mend it: host memory is used instead, at a fraction of the speed. "
        "Tell the administrator.";
    if (!loaded && version && version->first < kPeermemDriver) {
        // "driver-old" says it all.
    } else if (!loaded) {
        findings.push_back({"peermem-missing", Severity::Error,
                            "nvidia_peermem is not loaded and DMA-BUF is not available: the HCAs "
                            "cannot reach GPU memory.",
                            user,
                            "modprobe nvidia_peermem, and name it in /etc/modules-load.d; or set "
                            "load_peermem = yes in rdma-tune.conf."});
    } else if (!facts.peermem_uses_ib_core) {
        findings.push_back(
            {"peermem-unregistered", Severity::Error,
             "nvidia_peermem is loaded but not registered with the RDMA stack: there "
             "is no nv_mem in memory_peers and ib_core does not know it.",
             user,
             "It was built without the RDMA stack's headers. Install MLNX_OFED or "
             "DOCA-OFED first, then NVIDIA's driver (or dkms install --force nvidia), "
             "and load nvidia_peermem again; or use DMA-BUF with the open kernel "
             "modules."});
    } else {
        findings.push_back(
            {"peermem-unproven", Severity::Warning,
             "nvidia_peermem is loaded and linked with ib_core, but no entry in "
             "memory_peers proves that it is registered (newer kernels do not show "
             "one).",
             "Look for \"GPU Direct RDMA Enabled\" in the output of NCCL_DEBUG=INFO.",
             "Try a registration: ib_write_bw --use_cuda=0; or use DMA-BUF with the "
             "open kernel modules."});
    }
    explainDmabuf(node, facts, findings);
}

void judgeAmd(const Node& node, const GdrFacts& facts, Registration& out, Findings& findings) {
    const bool hca_takes = refusing(node, facts).empty();
    if (facts.memory_peers.contains("amdkfd") || facts.kernel_has_peer_memory) {
        out.fallback = {GdrWay::Peermem, ""};
        return;  // RCCL prefers it
    }
    if (facts.p2pdma_config == true && kernelHasDmabuf(facts) == true) {
        out.dmabuf = out.needs_env = true;
        out.fallback = {GdrWay::No, "dmabuf-hca"};
        if (!hca_takes) explainDmabuf(node, facts, findings);
    } else if (facts.p2pdma_config == false) {
        out.fallback = {GdrWay::No, "amd-kernel-config"};
        findings.push_back(
            {"amd-kernel-config", Severity::Error,
             fmt::format("Linux {} is built without CONFIG_PCI_P2PDMA or "
                         "CONFIG_DMABUF_MOVE_NOTIFY, and the HCA's driver has no peer "
                         "memory: the HCAs cannot reach GPU memory.",
                         facts.kernel_release),
             kTell,
             "Use a kernel with both options, or an HCA driver with peer memory "
             "(MLNX_OFED, DOCA-OFED, bnxt_re with ib_peer_mem)."});
    } else {
        out.fallback = {GdrWay::Unknown, "amd-unknown"};
        findings.push_back(
            {"amd-unknown", Severity::Info,
             "Whether the HCAs reach the AMD GPUs' memory could not be told: no amdkfd "
             "in memory_peers, and the kernel's configuration is not readable.",
             "Look for \"GPU Direct RDMA\" in the output of NCCL_DEBUG=INFO.",
             "Install the kernel's /boot/config file, or an HCA driver with peer "
             "memory."});
    }
}

}  // namespace

Way Registration::of(const VerbsFacts* hca) const {
    const bool refused = hca != nullptr && hca->dmabuf == DmabufProbe::NotSupported;
    return dmabuf && !refused ? Way{GdrWay::Dmabuf, ""} : fallback;
}

Registration judgeRegistration(const Node& node, const GdrFacts& facts, std::string_view vendor,
                               Findings& findings) {
    Registration out;
    out.vendor = vendor;
    if (facts.kernel_release.empty() && facts.modules.empty()) {
        out.fallback = {GdrWay::Unknown, "not-visible"};  // a saved topology: nothing was read
        return out;
    }
    if (vendor == "nvidia") {
        if (judgeDriver(node, facts, vendor, "nvidia", out, findings)) {
            const Way decided = out.fallback;
            judgePeermem(node, facts, out, findings);
            out.fallback = decided;
            return out;
        }
        const auto version = leadingVersion(facts.nvidia_version);
        out.dmabuf = facts.nvidia_open == true && version && version->first >= kDmabufDriver &&
                     kernelHasDmabuf(facts) == true;
        judgePeermem(node, facts, out, findings);
    } else if (vendor == "amd") {
        if (!judgeDriver(node, facts, vendor, "amdgpu", out, findings))
            judgeAmd(node, facts, out, findings);
    } else {
        out.fallback = {GdrWay::Unknown, "vendor-unknown"};
        findings.push_back({"vendor-unknown", Severity::Info,
                            fmt::format("GPUs of vendor \"{}\": how HCAs reach their memory is not "
                                        "known to this program.",
                                        vendor),
                            "Look at what the communication library says of GPU memory in its log.",
                            "Nothing to do for this program's sake."});
    }
    return out;
}

}  // namespace rdmatune::gdr
