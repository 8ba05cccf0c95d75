// What is in one machine: GPUs, HCAs, PCIe switches, NUMA nodes, cores. A plain value; whoever
// made it (the running machine, a saved topology) no longer matters to its readers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/cpu_set.hpp"
#include "tuner/base/pci_address.hpp"

namespace rdmatune {

/// How far a GPU and an HCA are apart, in NCCL's terms; smaller is nearer.
enum class Distance {
    Pix,   ///< at most one PCIe switch between them
    Pxb,   ///< several PCIe switches, no host bridge
    Phb,   ///< through a PCIe host bridge (the CPU)
    Node,  ///< between host bridges of one NUMA node or package
    Sys,   ///< across sockets
    Unknown
};

/// "PIX", "PXB", "PHB", "NODE", "SYS", "?"
[[nodiscard]] std::string_view toString(Distance distance);
[[nodiscard]] std::optional<Distance> parseDistance(std::string_view text);

enum class LinkLayer { Unknown, InfiniBand, Ethernet };
enum class PortState { Unknown, Down, Init, Armed, Active };
enum class GidType { InfiniBand, RoceV1, RoceV2 };

[[nodiscard]] std::string_view toString(LinkLayer layer);  ///< "InfiniBand", "Ethernet", "?"
[[nodiscard]] std::string_view toString(PortState state);  ///< "ACTIVE", "DOWN", ..., "?"
[[nodiscard]] std::string_view toString(GidType type);     ///< "IB", "RoCE v1", "RoCE v2"

/// One non-zero entry of a port's GID table.
struct Gid {
    int index = 0;
    std::string value;  ///< eight groups of four hexadecimal digits, as in /sys
    GidType type = GidType::InfiniBand;
    std::string netdev;  ///< network interface behind it; empty for InfiniBand
    bool operator==(const Gid&) const = default;
};

/// A PCIe link as it runs and as both ends could run it. 0: not known.
struct PcieLink {
    double speed_gts = 0;  ///< giga-transfers per second and lane (2.5, 5, 8, 16, 32, 64)
    int width = 0;         ///< lanes
    double max_speed_gts = 0;
    int max_width = 0;
    bool operator==(const PcieLink&) const = default;
};

struct Gpu {
    int index = 0;                    ///< position in PCI order; what `index` means everywhere
    std::optional<PciAddress> pci;    ///< absent only in a pasted matrix
    std::optional<std::string> uuid;  ///< "GPU-..."
    std::optional<int> minor;         ///< N of /dev/nvidiaN (AMD: of /dev/dri/renderD(128+N))
    std::string vendor;               ///< "nvidia", "amd", "intel"
    std::string model;                ///< may be empty
    int numa = -1;                    ///< NUMA node's OS number, -1: not known
    int package = -1;
    CpuSet cpus;                       ///< nearest CPUs; empty: not known
    std::vector<PciAddress> pci_path;  ///< bridges from the root port down to the GPU
    PcieLink link;
    std::vector<std::string> mig;  ///< MIG instances, as CUDA_VISIBLE_DEVICES takes them
    bool operator==(const Gpu&) const = default;
};

/// One port of one HCA function: (PCI function, port) is its identity, never the name.
struct Hca {
    std::string name;  ///< verbs name, such as mlx5_0; differs between boots and nodes
    int port = 1;
    std::optional<PciAddress> pci;
    LinkLayer link_layer = LinkLayer::Unknown;
    PortState state = PortState::Unknown;
    double rate_gbps = 0;  ///< active rate in Gbit/s; 0: not known
    double pcie_gbps = 0;  ///< what its PCIe link carries, where a file tells no more (hwloc)
    int lid = 0;
    int sm_lid = 0;
    std::vector<Gid> gids;       ///< empty and gids_known: the port has no GID
    bool gids_known = false;     ///< false in saved topologies that do not tell
    std::string netdev;          ///< its network interface, when one is known
    std::string node_guid;       ///< "xxxx:xxxx:xxxx:xxxx", may repeat on both functions of an ASIC
    std::string sys_image_guid;  ///< equal for all functions and ports of one ASIC
    int numa = -1;
    int package = -1;
    std::vector<PciAddress> pci_path;  ///< bridges from the root port down to the HCA
    PcieLink link;
    std::optional<PciAddress> physical_function;  ///< set when this is an SR-IOV virtual function
    bool has_vfs = false;     ///< a physical function with virtual functions enabled
    std::string bond_master;  ///< the bond its interface is enslaved to, if any
    bool is_bond = false;     ///< an RDMA device on top of a bond (RoCE LAG)
    bool software = false;    ///< RDMA in software (rxe, siw) over a network interface
    int open_errno = 0;       ///< of opening /dev/infiniband/uverbsN; 0: opened, or not tried
    bool operator==(const Hca&) const = default;

    /// "mlx5_0", or "mlx5_0:2" for any port but the first.
    [[nodiscard]] std::string label() const;

    /// Gbit/s that it can be expected to carry: its rate, else its PCIe link's; 0: not known.
    [[nodiscard]] double likelyGbps() const;
};

/// A PCIe bridge: root port, or a switch's upstream or downstream port.
struct PciBridge {
    PciAddress pci;
    std::string vendor_device;  ///< "vvvv:dddd" in hexadecimal, empty when not known
    PcieLink link;
    bool operator==(const PciBridge&) const = default;
};

struct NumaNode {
    int os_index = 0;
    int package = -1;
    CpuSet cpus;
    bool operator==(const NumaNode&) const = default;
};

/// Which reader made a Node.
enum class TopologySource { Live, HwlocXml, NcclXml, TopoMatrix, Json };
[[nodiscard]] std::string_view toString(TopologySource source);

/// One machine. GPUs are in PCI order (in a matrix: in its order) and gpus[i].index == i;
/// HCAs are in PCI order, then by port.
struct Node {
    std::string hostname;  ///< empty when not known
    TopologySource source = TopologySource::Live;
    std::vector<Gpu> gpus;
    std::vector<Hca> hcas;
    std::vector<PciBridge> bridges;
    std::vector<NumaNode> numa;
    CpuSet cpus;  ///< all CPUs of the machine that this process could know of
    std::vector<std::vector<Distance>> distance;  ///< [gpu][hca]
    /// A virtual machine that hides its PCIe tree: there is no topology to be seen.
    bool flat = false;
    std::vector<std::string> notes;  ///< oddities a person should be told, each one sentence
    bool operator==(const Node&) const = default;
};

}  // namespace rdmatune
