#include "tuner/task/look.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace {

constexpr int kMaxCpus = 65536;
constexpr int kFirstRenderNode = 128;  // DRM: card minors below, render nodes from here

/// A kernel CPU mask of kMaxCpus bits.
class CpuMask {
  public:
    CpuMask() : set_(CPU_ALLOC(kMaxCpus)) { CPU_ZERO_S(bytes(), set_); }
    ~CpuMask() { CPU_FREE(set_); }
    CpuMask(const CpuMask&) = delete;
    CpuMask& operator=(const CpuMask&) = delete;

    static std::size_t bytes() { return CPU_ALLOC_SIZE(kMaxCpus); }
    cpu_set_t* get() { return set_; }
    void add(int cpu) {
        if (cpu >= 0 && cpu < kMaxCpus) CPU_SET_S(cpu, bytes(), set_);
    }
    void addAll() { std::memset(set_, 0xff, bytes()); }
    [[nodiscard]] CpuSet toSet() const {
        CpuSet out;
        for (int cpu = 0; cpu < kMaxCpus; ++cpu)
            if (CPU_ISSET_S(cpu, bytes(), set_)) out.add(cpu);
        return out;
    }

  private:
    cpu_set_t* set_;
};

std::string deviceFile(const Gpu& gpu, const std::string& dev) {
    if (gpu.vendor == "amd" || gpu.vendor == "intel")
        return dev + "/dri/renderD" + std::to_string(kFirstRenderNode + *gpu.minor);
    return dev + "/nvidia" + std::to_string(*gpu.minor);
}

enum class Access { Open, Refused, Missing };

Access tryOpen(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        ::close(fd);
        return Access::Open;
    }
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return Access::Missing;
    return errno == EPERM || errno == EACCES ? Access::Refused : Access::Open;
}

/// CAP_IPC_LOCK, from the effective set that the kernel shows.
bool mayLockAnything() {
    constexpr std::string_view kField = "CapEff:";
    constexpr unsigned kCapIpcLock = 14;  // linux/capability.h
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (!line.starts_with(kField)) continue;
        const auto digits = trim(std::string_view(line).substr(kField.size()));
        std::uint64_t bits = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
        return (bits >> kCapIpcLock & 1U) != 0;
    }
    return false;
}

}  // namespace

std::optional<std::vector<int>> openableGpus(const Node& node, const std::string& dev) {
    std::vector<int> out;
    bool any_file = false;
    // NVIDIA's container runtime hides the folders in /proc of the GPUs that a container was not
    // given, while /sys shows all of them.
    const bool driver_tells = std::ranges::any_of(
        node.gpus, [](const Gpu& gpu) { return gpu.vendor == "nvidia" && gpu.minor.has_value(); });
    for (const Gpu& gpu : node.gpus) {
        if (!gpu.minor && driver_tells && gpu.vendor == "nvidia") continue;
        if (!gpu.minor) return std::nullopt;
        const Access access = tryOpen(deviceFile(gpu, dev));
        any_file = any_file || access != Access::Missing;
        if (access == Access::Open) out.push_back(gpu.index);
    }
    if (!any_file && node.source != TopologySource::Live) return std::nullopt;
    return out;
}

CpuSet currentAffinity() {
    CpuMask mask;
    if (::sched_getaffinity(0, CpuMask::bytes(), mask.get()) < 0) return {};
    return mask.toSet();
}

bool setAffinity(const CpuSet& cpus) {
    CpuMask mask;
    for (const int cpu : cpus.list()) mask.add(cpu);
    return ::sched_setaffinity(0, CpuMask::bytes(), mask.get()) == 0;
}

CpuSet cpusetLimit() {
    const CpuSet before = currentAffinity();
    CpuMask
        all;  // as a mask: a CpuSet of that many took longer than all the rest of a task's start
    all.addAll();
    if (::sched_setaffinity(0, CpuMask::bytes(), all.get()) != 0) return before;
    const CpuSet limit = currentAffinity();
    return setAffinity(before) ? limit : before;
}

CpuSet permittedCpus(const CpuSet& affinity, const CpuSet& cpuset, int online,
                     const Environment& env) {
    const std::string* given = lookUp(env, "SLURM_CPUS_ON_NODE");
    const auto count = given != nullptr ? parseInt<int>(trim(*given)) : std::nullopt;
    const bool whole_machine = static_cast<int>(cpuset.size()) >= online;
    if (whole_machine && count && *count < online) return affinity;
    return cpuset.empty() ? affinity : cpuset;
}

int onlineCpus() {
    return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

std::optional<std::uint64_t> memlockLimit() {
    rlimit limit{};
    if (mayLockAnything()) return std::nullopt;
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return std::nullopt;
    return limit.rlim_cur;
}

std::string netPluginOnPath(const Environment& env) {
    const std::string* path = lookUp(env, "LD_LIBRARY_PATH");
    if (path == nullptr) return {};
    for (const auto folder : split(*path, ':')) {
        if (folder.empty()) continue;
        std::string file = std::string(folder) + "/libnccl-net.so";
        if (isReadableFile(file)) return file;
    }
    return {};
}

bool isReadableFile(const std::string& path) {
    struct stat info {};
    return !path.empty() && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
           ::access(path.c_str(), R_OK) == 0;
}

}  // namespace rdmatune
