// A small healthy machine for the tests of gpudirect: two switches, each with one GPU and one HCA.
//
//   root port 00:01.0 - switch 01:00.0 -+- 02:00.0 - GPU 0 03:00.0
//                                       +- 02:01.0 - mlx5_0 04:00.0
//   root port 20:01.0 - switch 21:00.0 -+- 22:00.0 - GPU 1 23:00.0
//                                       +- 22:01.0 - mlx5_1 24:00.0
#pragma once

#include <string>
#include <vector>

#include "tests/unit/support/fake_tree.hpp"
#include "tests/unit/support/pci_config.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune::testing {

inline PciAddress pci(const char* text) {
    return *PciAddress::parse(text);
}

inline Node gdrNode(const std::string& vendor = "nvidia") {
    const PcieLink full{32, 16, 32, 16};
    Node node;
    node.hostname = "n1";
    for (int i = 0; i < 2; ++i) {
        const std::string root = i == 0 ? "0000:0" : "0000:2";
        const PciAddress port = pci((root + "0:01.0").c_str());
        const PciAddress up = pci((root + "1:00.0").c_str());
        const PciAddress to_gpu = pci((root + "2:00.0").c_str());
        const PciAddress to_hca = pci((root + "2:01.0").c_str());
        for (const PciAddress& bridge : {port, up, to_gpu, to_hca})
            node.bridges.push_back({bridge, "1000:c030", full});
        Gpu gpu;
        gpu.index = i;
        gpu.pci = pci((root + "3:00.0").c_str());
        gpu.vendor = vendor;
        gpu.pci_path = {port, up, to_gpu};
        gpu.link = full;
        node.gpus.push_back(gpu);
        Hca hca;
        hca.name = "mlx5_" + std::to_string(i);
        hca.pci = pci((root + "4:00.0").c_str());
        hca.link_layer = LinkLayer::InfiniBand;
        hca.state = PortState::Active;
        hca.rate_gbps = 400;
        hca.pci_path = {port, up, to_hca};
        hca.link = full;
        node.hcas.push_back(hca);
    }
    node.distance = {{Distance::Pix, Distance::Sys}, {Distance::Sys, Distance::Pix}};
    return node;
}

inline const char* const kOpenDriver =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  (x)\n"
    "GCC version:  gcc version 12.2.0\n";
inline const char* const kClosedDriver =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n";

inline std::string limits(const std::string& soft, const std::string& hard) {
    return "Limit                     Soft Limit           Hard Limit           Units     \n"
           "Max processes             127826               127826               processes \n"
           "Max locked memory         " +
           soft + "             " + hard + "            bytes     \n";
}

inline std::string cpuinfo(const std::string& vendor, int family,
                           const std::string& flags = "fpu") {
    return "processor\t: 0\nvendor_id\t: " + vendor + "\ncpu family\t: " + std::to_string(family) +
           "\nflags\t\t: " + flags + "\n\n";
}

/// Everything of `node` as a healthy machine shows it to root: open driver, DMA-BUF, no ACS.
inline void writeHealthy(FakeTree& tree, const Node& node) {
    tree.file("proc/sys/kernel/osrelease", "5.15.0-91-generic\n")
        .file("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro iommu=pt\n")
        .file("proc/cpuinfo", cpuinfo("GenuineIntel", 6))
        .file("proc/driver/nvidia/version", kOpenDriver)
        .file("proc/self/limits", limits("unlimited", "unlimited"))
        .file("sys/module/nvidia/version", "550.54.15\n");
    const auto device = [&](const PciAddress& address, const PciConfig& config,
                            const std::string& driver) {
        const std::string folder = "sys/bus/pci/devices/" + address.str() + "/";
        tree.file(folder + "config", config.bytes());
        tree.link(folder + "driver", "../../drivers/" + driver);
        tree.file(folder + "iommu_group/type", "identity\n");
    };
    PciConfig port;
    port.acs = 0;
    for (const PciBridge& bridge : node.bridges) device(bridge.pci, port, "pcieport");
    for (const Gpu& gpu : node.gpus)
        device(*gpu.pci, {}, gpu.vendor == "amd" ? "amdgpu" : "nvidia");
    for (std::size_t i = 0; i < node.hcas.size(); ++i) {
        device(*node.hcas[i].pci, {}, "mlx5_core");
        const std::string uverbs = "uverbs" + std::to_string(i);
        tree.file("sys/class/infiniband_verbs/" + uverbs + "/ibdev", node.hcas[i].name + "\n");
        tree.file("dev/infiniband/" + uverbs, "");
    }
}

}  // namespace rdmatune::testing
