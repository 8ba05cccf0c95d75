// Everything that was read about one machine to judge GPUDirect RDMA. A plain value: the reader
// (gdr_read) fills it, the judge (gdr_judge) only looks.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tuner/base/pci_address.hpp"
#include "tuner/gpudirect/config_space.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

/// RLIMIT_MEMLOCK without a limit, in bytes.
inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// One PCI function on the way between a GPU and an HCA, either of them included.
struct PciFacts {
    bool present = false;  ///< its folder in /sys exists
    ConfigSpace config;
    std::string
        driver;  ///< "nvidia", "nouveau", "vfio-pci", ...; empty: none is bound, or not told
    std::string
        iommu_type;  ///< of its IOMMU group: "DMA", "DMA-FQ", "identity", ...; empty: no group
};

/// What asking an HCA's driver for DMA-BUF support gave.
enum class DmabufProbe {
    NotTried,     ///< not the running machine, or the device cannot be opened
    Supported,    ///< the driver looked at the (deliberately invalid) file descriptor
    NotSupported  ///< the driver or the kernel does not know the call
};

/// One HCA function as this process sees it, by verbs name.
struct VerbsFacts {
    std::string device;  ///< "/dev/infiniband/uverbs0"; empty: no such device is known to /sys
    int open_errno = 0;  ///< why it could not be opened for reading and writing; 0: it could
    DmabufProbe dmabuf = DmabufProbe::NotTried;
};

/// The locked-memory limit of one process, bytes.
struct MemlockLimit {
    std::uint64_t soft = kUnlimited;
    std::uint64_t hard = kUnlimited;
};

enum class CpuKind { Unknown, Intel, AmdZen, OtherX86, Arm };

struct GdrFacts {
    // The kernel.
    std::string kernel_release;  ///< "5.15.0-91-generic"; empty: not seen
    bool iommu_pt = false;       ///< iommu=pt on the kernel's command line
    bool hypervisor = false;     ///< a virtual machine
    CpuKind cpu = CpuKind::Unknown;
    std::set<std::string> modules;  ///< loaded, of those that matter here
    bool peermem_uses_ib_core =
        false;  ///< nvidia_peermem is linked with ib_core's (or ib_uverbs') peer-memory calls
    std::set<std::string> memory_peers;   ///< registered peers: "nv_mem", "nv_mem_nc", "amdkfd"
    bool kernel_has_peer_memory = false;  ///< ib_core exports ib_register_peer_memory_client
    std::optional<bool>
        p2pdma_config;  ///< CONFIG_PCI_P2PDMA and, before it went away, DMABUF_MOVE_NOTIFY

    // NVIDIA's driver.
    std::string nvidia_version;                        ///< "550.54.15"; empty: not seen
    std::optional<bool> nvidia_open;                   ///< the open kernel modules
    std::map<std::string, std::string> nvidia_params;  ///< /proc/driver/nvidia/params

    // Devices.
    std::map<PciAddress, PciFacts> pci;
    std::map<std::string, VerbsFacts> verbs;  ///< by Hca::name

    // This process and Slurm's daemon, whose hard limit is the most that a job gets.
    bool root = false;
    bool in_job = false;
    std::optional<MemlockLimit> memlock;
    std::optional<MemlockLimit> memlock_slurmd;
};

/// (major, minor) of "5.15.0-91-generic" or "550.54.15"; nothing when it does not begin so.
[[nodiscard]] std::optional<std::pair<int, int>> leadingVersion(const std::string& text);

}  // namespace rdmatune
