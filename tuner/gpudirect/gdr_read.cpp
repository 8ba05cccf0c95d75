#include "tuner/gpudirect/gdr_read.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "tuner/base/text.hpp"
#include "tuner/gpudirect/small_file.hpp"

namespace rdmatune {
namespace {

// Modules whose presence decides something. /sys/module also lists drivers built into the kernel.
constexpr const char* kModules[] = {"nvidia",  "nvidia_peermem", "nv_peer_mem", "nouveau",
                                    "amdgpu",  "vfio_pci",       "ib_core",     "ib_uverbs",
                                    "mlx5_ib", "rdma_rxe"};

// Where peer memory clients show: MLNX_OFED and Ubuntu's kernels use the first; since Linux 6.4 a
// module cannot reach that folder any more and drivers chose another (rccl PR#1328).
constexpr const char* kPeerFolders[] = {"/kernel/mm/memory_peers/", "/kernel/memory_peers/",
                                        "/memory_peers/"};

bool live(const SystemRoots& roots) {
    return roots.sys == "/sys" && roots.proc == "/proc";
}

/// `/boot` of the running machine, or the one beside a hand-made /sys.
std::string bootRoot(const SystemRoots& roots) {
    const auto slash = roots.sys.rfind('/');
    return (slash == std::string::npos ? "." : roots.sys.substr(0, slash)) + "/boot";
}

/// Whether a symbol is in /proc/kallsyms (its names are readable without privileges). The file has
/// some 10 MB, hence line by line, and a bound in case it never ends.
bool kernelHasSymbol(const std::string& proc, std::string_view symbol) {
    constexpr long kMaxLines = 2'000'000;
    std::ifstream file(proc + "/kallsyms");
    std::string line;
    for (long i = 0; i < kMaxLines && std::getline(file, line); ++i) {
        // "ffffffffc0a1b2c0 T name", then "\t[module]" for a module's.
        const std::string_view text = line;
        const auto at = text.find(symbol);
        if (at == std::string_view::npos || at == 0 || text[at - 1] != ' ') continue;
        const auto end = at + symbol.size();
        if (end == text.size() || text[end] == '\t' || text[end] == ' ') return true;
    }
    return false;
}

void readKernel(const SystemRoots& roots, GdrFacts& facts) {
    facts.kernel_release = trim(readSmallFile(roots.proc + "/sys/kernel/osrelease").value_or(""));
    const std::string command_line = readSmallFile(roots.proc + "/cmdline").value_or("");
    for (const auto word : split(trim(command_line), ' '))
        if (word == "iommu=pt" || word == "iommu.passthrough=1") facts.iommu_pt = true;
    for (const char* name : kModules)
        if (pathExists(roots.sys + "/module/" + name)) facts.modules.insert(name);
    // The call that registers a peer is ib_core's, or ib_uverbs' where memory regions live there.
    for (const char* owner : {"ib_core", "ib_uverbs"})
        facts.peermem_uses_ib_core |=
            pathExists(roots.sys + "/module/" + owner + "/holders/nvidia_peermem");
    for (const char* folder : kPeerFolders)
        for (const char* peer : {"nv_mem", "nv_mem_nc", "amdkfd"})
            if (pathExists(roots.sys + folder + peer + "/version")) facts.memory_peers.insert(peer);
}

void readCpu(const SystemRoots& roots, GdrFacts& facts) {
    std::string vendor;
    int family = 0;
    // The first processor's block is enough; all of them are alike.
    const std::string text = readSmallFile(roots.proc + "/cpuinfo", 16384).value_or("");
    for (const auto line : split(text, '\n')) {
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) {
            if (!vendor.empty() && trim(line).empty()) break;
            continue;
        }
        const auto key = trim(line.substr(0, colon));
        const auto value = trim(line.substr(colon + 1));
        if (key == "vendor_id") vendor = value;
        if (key == "cpu family") family = parseInt<int>(value).value_or(0);
        if (key == "CPU implementer") facts.cpu = CpuKind::Arm;
        if (key == "flags")
            for (const auto flag : split(value, ' '))
                if (flag == "hypervisor") facts.hypervisor = true;
    }
    constexpr int kZen = 0x17;  // AMD's first family whose host bridges forward peer traffic
    if (vendor == "GenuineIntel")
        facts.cpu = CpuKind::Intel;
    else if ((vendor == "AuthenticAMD" || vendor == "HygonGenuine") && family >= kZen)
        facts.cpu = CpuKind::AmdZen;
    else if (!vendor.empty())
        facts.cpu = CpuKind::OtherX86;
}

void readNvidia(const SystemRoots& roots, GdrFacts& facts) {
    const std::string folder = roots.proc + "/driver/nvidia";
    if (const auto text = readSmallFile(folder + "/version")) {
        // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build ..."
        const auto line = split(*text, '\n').front();
        facts.nvidia_open = line.find("Open Kernel Module") != std::string_view::npos;
        for (const auto word : split(line, ' '))
            if (facts.nvidia_version.empty() && word.find('.') != std::string_view::npos &&
                leadingVersion(std::string(word)))
                facts.nvidia_version = trim(word);
    }
    const std::string params = readSmallFile(folder + "/params").value_or("");
    for (const auto line : split(params, '\n'))
        if (const auto colon = line.find(':'); colon != std::string_view::npos)
            facts.nvidia_params.emplace(trim(line.substr(0, colon)), trim(line.substr(colon + 1)));
}

/// What RCCL asks of the kernel before it takes DMA-BUF: both options in the kernel's
/// configuration.
void readAmd(const Node& node, const SystemRoots& roots, GdrFacts& facts) {
    if (std::ranges::none_of(node.gpus, [](const Gpu& gpu) { return gpu.vendor == "amd"; })) return;
    if (!facts.memory_peers.contains("amdkfd"))
        facts.kernel_has_peer_memory =
            kernelHasSymbol(roots.proc, "ib_register_peer_memory_client");
    const auto config = readSmallFile(bootRoot(roots) + "/config-" + facts.kernel_release, 1 << 20);
    if (!config) return;
    const bool p2pdma = config->find("CONFIG_PCI_P2PDMA=y") != std::string::npos;
    const bool option_exists = config->find("CONFIG_DMABUF_MOVE_NOTIFY") != std::string::npos;
    const bool notify = config->find("CONFIG_DMABUF_MOVE_NOTIFY=y") != std::string::npos;
    facts.p2pdma_config = p2pdma && (notify || !option_exists);
}

void readDevice(const PciAddress& address, const SystemRoots& roots, GdrFacts& facts) {
    if (facts.pci.contains(address)) return;
    PciFacts& device = facts.pci[address];
    const std::string folder = roots.sys + "/bus/pci/devices/" + address.str();
    device.present = pathExists(folder);
    if (!device.present) return;
    device.config = parseConfigSpace(readSmallFile(folder + "/config", 4096).value_or(""));
    device.driver = linkName(folder + "/driver");
    device.iommu_type = trim(readSmallFile(folder + "/iommu_group/type").value_or(""));
}

void readDevices(const Node& node, const SystemRoots& roots, GdrFacts& facts) {
    const auto readAll = [&](const auto& device) {
        if (device.pci) readDevice(*device.pci, roots, facts);
        for (const PciAddress& bridge : device.pci_path) readDevice(bridge, roots, facts);
    };
    for (const Gpu& gpu : node.gpus) readAll(gpu);
    for (const Hca& hca : node.hcas) readAll(hca);
}

void readVerbs(const Node& node, const SystemRoots& roots, GdrFacts& facts) {
    std::map<std::string, std::string> device_of;  // verbs name -> uverbsN
    const std::string folder = roots.sys + "/class/infiniband_verbs/";
    for (const std::string& name : listDirectory(folder)) {
        std::string path = folder;
        path.append(name).append("/ibdev");
        if (const auto ibdev = readSmallFile(path)) device_of[std::string(trim(*ibdev))] = name;
    }
    std::map<std::string, DmabufProbe> by_driver;  // asking one HCA of each driver is enough
    for (const Hca& hca : node.hcas) {
        if (facts.verbs.contains(hca.name)) continue;
        VerbsFacts& verbs = facts.verbs[hca.name];
        const auto found = device_of.find(hca.name);
        if (found == device_of.end()) continue;
        verbs.device = roots.dev + "/infiniband/" + found->second;
        const int fd = ::open(verbs.device.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        verbs.open_errno = fd < 0 ? errno : 0;
        if (fd < 0) continue;
        ::close(fd);
        if (!live(roots)) continue;
        const std::string driver = hca.pci ? facts.pci[*hca.pci].driver : "";
        const auto asked = by_driver.find(driver);
        verbs.dmabuf =
            !driver.empty() && asked != by_driver.end() ? asked->second : probeDmabuf(hca.name);
        by_driver[driver] = verbs.dmabuf;
    }
}

/// The line "Max locked memory  SOFT  HARD  bytes" of a process' limits.
std::optional<MemlockLimit> limitsOf(const std::string& folder) {
    constexpr std::string_view kName = "Max locked memory";
    const std::string text = readSmallFile(folder + "/limits").value_or("");
    for (const auto line : split(text, '\n')) {
        if (!line.starts_with(kName)) continue;
        MemlockLimit out;
        int field = 0;
        for (const auto word : split(line.substr(kName.size()), ' ')) {
            if (word.empty()) continue;
            const auto bytes =
                word == "unlimited" ? std::optional(kUnlimited) : parseInt<std::uint64_t>(word);
            if (!bytes) return std::nullopt;
            (field == 0 ? out.soft : out.hard) = *bytes;
            if (++field == 2) return out;
        }
    }
    return std::nullopt;
}

void readLimits(const SystemRoots& roots, GdrFacts& facts) {
    facts.root = live(roots) && ::geteuid() == 0;
    facts.in_job = live(roots) && std::getenv("SLURM_JOB_ID") != nullptr;
    if (live(roots)) {
        rlimit limit{};
        if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
            facts.memlock =
                MemlockLimit{limit.rlim_cur == RLIM_INFINITY ? kUnlimited : limit.rlim_cur,
                             limit.rlim_max == RLIM_INFINITY ? kUnlimited : limit.rlim_max};
    } else {
        facts.memlock = limitsOf(roots.proc + "/self");
    }
    if (facts.in_job) return;  // this process' own limit is the job's
    constexpr std::size_t kMaxProcesses = 65536;
    for (const std::string& name : listDirectory(roots.proc, kMaxProcesses)) {
        if (!std::isdigit(static_cast<unsigned char>(name.front()))) continue;
        std::string folder = roots.proc + "/";
        folder += name;
        if (trim(readSmallFile(folder + "/comm", 64).value_or("")) != "slurmd") continue;
        facts.memlock_slurmd = limitsOf(folder);
        return;
    }
}

}  // namespace

std::optional<std::pair<int, int>> leadingVersion(const std::string& text) {
    const auto dot = text.find('.');
    if (dot == std::string::npos) return std::nullopt;
    const auto end = std::min(text.find_first_not_of("0123456789", dot + 1), text.size());
    const auto major = parseInt<int>(std::string_view(text).substr(0, dot));
    const auto minor = parseInt<int>(std::string_view(text).substr(dot + 1, end - dot - 1));
    if (!major || !minor) return std::nullopt;
    return std::pair{*major, *minor};
}

GdrFacts readGdrFacts(const Node& node, const SystemRoots& roots) {
    GdrFacts facts;
    readKernel(roots, facts);
    readCpu(roots, facts);
    readNvidia(roots, facts);
    readAmd(node, roots, facts);
    readDevices(node, roots, facts);
    readVerbs(node, roots, facts);
    readLimits(roots, facts);
    return facts;
}

}  // namespace rdmatune
