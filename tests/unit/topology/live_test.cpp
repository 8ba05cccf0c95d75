// The reader of running machines on made-up trees: one oddity of real machines each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "tests/unit/topology/cases.hpp"
#include "tests/unit/topology/sys_tree.hpp"

namespace rdmatune {
namespace {

using testing::distanceTo;
using ::testing::ElementsAre;
using testing::hcaNamed;
using ::testing::IsEmpty;
using testing::noted;
using testing::SysTree;

/// Two sockets; on each a switch with a GPU in the first port and an HCA in the second.
class TwoSockets : public ::testing::Test {
  protected:
    TwoSockets() {
        tree.numa(0, "0-3,8-11", 0);
        tree.numa(1, "4-7,12-15", 1);
        tree.pcieSwitch(0x10, 3, 0);
        tree.pcieSwitch(0x80, 3, 1);
        tree.pci("0000:12:00.0", kGpu0, "0x030200", "0x10de", "0x2330", 0);
        tree.pci("0000:12:01.0", kHca0, "0x020700", "0x15b3", "0x1021", 0);
        tree.pci("0000:82:00.0", kGpu1, "0x030200", "0x10de", "0x2330", 1);
        tree.pci("0000:82:01.0", kHca1, "0x020700", "0x15b3", "0x1021", 1);
        tree.verbs("mlx5_1", kHca0);
        tree.verbs("mlx5_0", kHca1);
        tree.write("proc/sys/kernel/hostname", "node7");
    }

    static constexpr const char* kGpu0 = "0000:13:00.0";
    static constexpr const char* kHca0 = "0000:14:00.0";
    static constexpr const char* kGpu1 = "0000:83:00.0";
    static constexpr const char* kHca1 = "0000:84:00.0";
    SysTree tree;
};

TEST_F(TwoSockets, IsReadWhole) {
    const Node node = tree.read();
    EXPECT_EQ(node.hostname, "node7");
    EXPECT_EQ(node.source, TopologySource::Live);
    ASSERT_EQ(node.gpus.size(), 2U);
    ASSERT_EQ(node.hcas.size(), 2U);
    EXPECT_EQ(distanceTo(node, 0, "mlx5_1"), "PIX");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "SYS");
    EXPECT_EQ(distanceTo(node, 1, "mlx5_0"), "PIX");
    EXPECT_EQ(node.gpus[1].cpus.str(), "4-7,12-15");
    EXPECT_EQ(node.gpus[1].package, 1);
    EXPECT_EQ(node.hcas[1].package, 1);
    EXPECT_EQ(node.cpus.str(), "0-15");
    const Hca& hca = hcaNamed(node, "mlx5_1");
    EXPECT_EQ(hca.pci->str(), kHca0);
    EXPECT_EQ(hca.state, PortState::Active);
    EXPECT_EQ(hca.link_layer, LinkLayer::InfiniBand);
    EXPECT_EQ(hca.rate_gbps, 400);
    EXPECT_EQ(hca.lid, 31);
    EXPECT_EQ(hca.sm_lid, 1);
    EXPECT_EQ(hca.open_errno, 0);
    EXPECT_EQ(hca.pci_path.size(), 3U);
}

TEST_F(TwoSockets, NvidiaDriverTellsUuidMinorAndModel) {
    tree.write("proc/driver/nvidia/gpus/0000:13:00.0/information",
               "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 100\nGPU UUID: \t "
               "GPU-11111111-2222-3333-4444-555555555555\nBus Location: \t 0000:13:00.0\n"
               "Device Minor: \t 5\nGPU Excluded:\t No");
    tree.write("proc/driver/nvidia/gpus/0000:83:00.0/information",
               "Model: \t\t Unknown\nGPU UUID: \t GPU-" + std::string(8, '?') +
                   "\n"
                   "Device Minor: \t 6");
    const Node node = tree.read();
    EXPECT_EQ(node.gpus[0].uuid, "GPU-11111111-2222-3333-4444-555555555555");
    EXPECT_EQ(node.gpus[0].minor, 5);
    EXPECT_EQ(node.gpus[0].model, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(node.gpus[1].uuid, std::nullopt);
    EXPECT_EQ(node.gpus[1].minor, 6);
    EXPECT_FALSE(noted(node, "No NVIDIA driver"));
}

TEST_F(TwoSockets, WithoutADriverSaysSo) {
    const Node node = tree.read();
    EXPECT_EQ(node.gpus[0].minor, std::nullopt);
    EXPECT_TRUE(noted(node, "No NVIDIA driver has taken 0000:13:00.0, 0000:83:00.0"));
}

TEST_F(TwoSockets, MigInstances) {
    tree.write("proc/driver/nvidia/gpus/0000:13:00.0/information",
               "GPU UUID: \t GPU-11111111-2222-3333-4444-555555555555\nDevice Minor: \t 2");
    tree.write("proc/driver/nvidia/capabilities/gpu2/mig/gi1/ci0/access", "DeviceFileMinor: 12");
    tree.write("proc/driver/nvidia/capabilities/gpu2/mig/gi1/access", "DeviceFileMinor: 11");
    tree.write("proc/driver/nvidia/capabilities/gpu2/mig/gi2/ci0/access", "DeviceFileMinor: 15");
    tree.write("proc/driver/nvidia/capabilities/gpu2/mig/gi2/ci1/access", "DeviceFileMinor: 16");
    EXPECT_THAT(tree.read().gpus[0].mig,
                ElementsAre("MIG-GPU-11111111-2222-3333-4444-555555555555/1/0",
                            "MIG-GPU-11111111-2222-3333-4444-555555555555/2/0",
                            "MIG-GPU-11111111-2222-3333-4444-555555555555/2/1"));
}

TEST_F(TwoSockets, OnlyComputeGpusCount) {
    tree.pci("pci0000:00", "0000:00:02.0", "0x030000", "0x8086");  // a processor's graphics
    tree.pci("pci0000:00", "0000:00:03.0", "0x030000", "0x1a03");  // ASPEED management controller
    tree.pci("pci0000:00", "0000:00:04.0", "0x030000", "0x102b");  // Matrox
    tree.pci("pci0000:00", "0000:00:05.0", "0x030000", "0x1002");  // AMD display
    tree.pci("pci0000:00", "0000:00:06.0", "0x040300", "0x10de");  // a GPU's audio function
    tree.pci("pci0000:00", "0000:00:07.0", "0x068000", "0x10de");  // NVSwitch
    EXPECT_EQ(tree.read().gpus.size(), 2U);
    tree.pci("pci0000:00", "0000:00:08.0", "0x030000", "0x10de");  // GeForce
    tree.pci("pci0000:00", "0000:00:09.0", "0x038000", "0x8086");  // Data Center GPU Max
    tree.pci("pci0000:00", "0000:00:0a.0", "0x120000", "0x1002");  // Instinct MI300
    const Node node = tree.read();
    ASSERT_EQ(node.gpus.size(), 5U);
    EXPECT_EQ(node.gpus[0].pci->str(), "0000:00:08.0");
    EXPECT_EQ(node.gpus[1].vendor, "intel");
    EXPECT_EQ(node.gpus[2].vendor, "amd");
}

TEST_F(TwoSockets, AmdGpuHasRenderNodeAndUniqueId) {
    const std::string folder = tree.pci("pci0000:00", "0000:00:0a.0", "0x120000", "0x1002");
    tree.write(folder + "/drm/renderD130/dev", "226:130");
    tree.write(folder + "/drm/card2/dev", "226:2");
    tree.write(folder + "/unique_id", "d2f0c1b4a5968778");
    tree.write(folder + "/product_name", "AMD Instinct MI300X OAM");
    const Gpu gpu = tree.read().gpus[0];
    EXPECT_EQ(gpu.minor, 2);
    EXPECT_EQ(gpu.uuid, "GPU-d2f0c1b4a5968778");
    EXPECT_EQ(gpu.model, "AMD Instinct MI300X OAM");
}

TEST_F(TwoSockets, PortsThatAreNotUp) {
    tree.write(SysTree::portFolder("mlx5_0") + "/state", "1: DOWN");
    tree.write(SysTree::portFolder("mlx5_0") + "/rate", "2.5 Gb/sec (1X SDR)");
    tree.write(SysTree::portFolder("mlx5_1") + "/state", "2: INIT");
    const Node node = tree.read();
    EXPECT_EQ(hcaNamed(node, "mlx5_0").state, PortState::Down);
    EXPECT_EQ(hcaNamed(node, "mlx5_0").rate_gbps, 2.5);
    EXPECT_EQ(hcaNamed(node, "mlx5_1").state, PortState::Init);
}

TEST_F(TwoSockets, TwoPortsAreTwoHcas) {
    tree.verbs("mlx5_0", kHca1, 2);
    tree.write(SysTree::portFolder("mlx5_0", 2) + "/link_layer", "Ethernet");
    tree.write(SysTree::portFolder("mlx5_0", 2) + "/state", "3: ARMED");
    tree.write(tree.folder(kHca1) + "/net/ibs1/dev_port", "0");
    tree.write(tree.folder(kHca1) + "/net/ens2/dev_port", "1");
    const Node node = tree.read();
    ASSERT_EQ(node.hcas.size(), 3U);
    EXPECT_EQ(hcaNamed(node, "mlx5_0").netdev, "ibs1");
    const Hca& second = hcaNamed(node, "mlx5_0:2");
    EXPECT_EQ(second.netdev, "ens2");
    EXPECT_EQ(second.link_layer, LinkLayer::Ethernet);
    EXPECT_EQ(second.state, PortState::Armed);
    EXPECT_EQ(second.pci, hcaNamed(node, "mlx5_0").pci);
    EXPECT_EQ(distanceTo(node, 1, "mlx5_0:2"), "PIX");
}

TEST_F(TwoSockets, RoceGidTable) {
    tree.write(SysTree::portFolder("mlx5_0") + "/link_layer", "Ethernet");
    tree.gid("mlx5_0", 0, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "IB/RoCE v1", "ens1");
    tree.gid("mlx5_0", 1, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "RoCE v2", "ens1");
    tree.gid("mlx5_0", 2, "0000:0000:0000:0000:0000:0000:0000:0000", "", "");
    tree.gid("mlx5_0", 3, "0000:0000:0000:0000:0000:ffff:c0a8:0105", "RoCE v2", "ens1.100");
    const Hca hca = hcaNamed(tree.read(), "mlx5_0");
    EXPECT_TRUE(hca.gids_known);
    EXPECT_EQ(hca.netdev, "ens1");
    ASSERT_EQ(hca.gids.size(), 3U);
    EXPECT_EQ(hca.gids[0].type, GidType::RoceV1);
    EXPECT_EQ(hca.gids[1].type, GidType::RoceV2);
    EXPECT_EQ(hca.gids[2],
              (Gid{3, "0000:0000:0000:0000:0000:ffff:c0a8:0105", GidType::RoceV2, "ens1.100"}));
    EXPECT_EQ(hcaNamed(tree.read(), "mlx5_1").gids[0].type, GidType::InfiniBand);
}

TEST_F(TwoSockets, PortWithoutAGid) {
    tree.write(SysTree::portFolder("mlx5_0") + "/gids/0",
               "0000:0000:0000:0000:0000:0000:0000:0000");
    const Hca hca = hcaNamed(tree.read(), "mlx5_0");
    EXPECT_TRUE(hca.gids_known);
    EXPECT_THAT(hca.gids, IsEmpty());
}

TEST_F(TwoSockets, VirtualFunctionBesideItsPhysicalOne) {
    const std::string vf =
        tree.pci("0000:82:01.0", "0000:84:00.2", "0x020700", "0x15b3", "0x101e", 1);
    tree.verbs("mlx5_9", "0000:84:00.2");
    tree.link(vf + "/physfn", "../0000:84:00.0");
    tree.link(tree.folder(kHca1) + "/virtfn0", "../0000:84:00.2");
    tree.write(tree.folder(kHca1) + "/sriov_numvfs", "1");
    const Node node = tree.read();
    EXPECT_TRUE(hcaNamed(node, "mlx5_0").has_vfs);
    EXPECT_EQ(hcaNamed(node, "mlx5_0").physical_function, std::nullopt);
    EXPECT_FALSE(hcaNamed(node, "mlx5_9").has_vfs);
    EXPECT_EQ(hcaNamed(node, "mlx5_9").physical_function, PciAddress::parse(kHca1));
    EXPECT_EQ(distanceTo(node, 1, "mlx5_9"), "PIX");
    EXPECT_FALSE(hcaNamed(node, "mlx5_1").has_vfs);
}

TEST_F(TwoSockets, BondsAndTheirSlaves) {
    tree.write("sys/class/net/bond0/bonding/mode", "802.3ad 4");
    tree.write("sys/class/net/ens1/dev_port", "0");
    tree.link("sys/class/net/ens1/master", tree.path("sys/class/net/bond0"));
    tree.gid("mlx5_0", 0, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "RoCE v2", "ens1");
    tree.gid("mlx5_1", 0, "fe80:0000:0000:0000:0e42:a1ff:fe00:0002", "RoCE v2", "bond0");
    tree.verbs("mlx5_bond_0", kHca0);
    const Node node = tree.read();
    EXPECT_EQ(hcaNamed(node, "mlx5_0").bond_master, "bond0");
    EXPECT_FALSE(hcaNamed(node, "mlx5_0").is_bond);
    EXPECT_TRUE(hcaNamed(node, "mlx5_1").is_bond);
    EXPECT_EQ(hcaNamed(node, "mlx5_1").bond_master, "");
    EXPECT_TRUE(hcaNamed(node, "mlx5_bond_0").is_bond);
}

TEST_F(TwoSockets, ABridgeAsMasterIsNoBond) {
    tree.write("sys/class/net/br0/bridge/stp_state", "0");
    tree.link("sys/class/net/ens1/master", tree.path("sys/class/net/br0"));
    tree.gid("mlx5_0", 0, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "RoCE v2", "ens1");
    EXPECT_EQ(hcaNamed(tree.read(), "mlx5_0").bond_master, "");
}

TEST_F(TwoSockets, PcieLinks) {
    tree.write(tree.folder(kGpu0) + "/current_link_speed", "16.0 GT/s PCIe");
    tree.write(tree.folder(kGpu0) + "/max_link_speed", "32.0 GT/s PCIe");
    tree.write(tree.folder(kGpu0) + "/current_link_width", "8");
    tree.write(tree.folder(kGpu0) + "/max_link_width", "16");
    tree.write(tree.folder(kGpu1) + "/current_link_speed", "Unknown");
    tree.write(tree.folder(kGpu1) + "/current_link_width", "255");
    tree.write(tree.folder("0000:11:00.0") + "/current_link_speed", "8 GT/s");
    tree.write(tree.folder("0000:11:00.0") + "/current_link_width", "4");
    const Node node = tree.read();
    EXPECT_EQ(node.gpus[0].link, (PcieLink{16, 8, 32, 16}));
    EXPECT_EQ(node.gpus[1].link, (PcieLink{}));
    ASSERT_EQ(node.bridges.size(), 8U);  // the third port of each switch is empty: not kept
    EXPECT_EQ(node.bridges[1].pci.str(), "0000:11:00.0");
    EXPECT_EQ(node.bridges[1].vendor_device, "1000:c030");
    EXPECT_EQ(node.bridges[1].link, (PcieLink{8, 4, 0, 0}));
}

TEST_F(TwoSockets, DevicesThatCannotBeOpened) {
    tree.write("sys/class/infiniband_verbs/abi_version", "6");
    tree.write("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0");
    const Node node = tree.read();
    EXPECT_EQ(hcaNamed(node, "mlx5_0").open_errno, ENOENT);  // no such file under /dev
    EXPECT_EQ(hcaNamed(node, "mlx5_1").open_errno, ENODEV);  // ib_uverbs does not know it
    tree.write("dev/infiniband/uverbs0", "");
    EXPECT_EQ(hcaNamed(tree.read(), "mlx5_0").open_errno, 0);
    std::filesystem::remove(tree.path("dev/infiniband/uverbs0"));
    // Refused to everyone, root included: a folder cannot be opened for writing.
    std::filesystem::create_directory(tree.path("dev/infiniband/uverbs0"));
    EXPECT_EQ(hcaNamed(tree.read(), "mlx5_0").open_errno, EISDIR);
}

TEST_F(TwoSockets, SoftwareRdmaStandsWhereItsInterfaceDoes) {
    tree.pci("0000:82:02.0", "0000:85:00.0", "0x020000", "0x1af4", "0x1041", 1);
    tree.write(tree.folder("0000:85:00.0") + "/virtio0/net/eth1/dev_port", "0");
    tree.link("sys/class/net/eth1/device", tree.path(tree.folder("0000:85:00.0") + "/virtio0"));
    tree.verbs("rxe0", "");
    tree.write("sys/class/infiniband/rxe0/parent", "eth1");
    tree.verbs("rxe1", "");
    tree.write("sys/class/infiniband/rxe1/parent", "lo");
    // Old kernels hang such devices on the interface's PCI function.
    tree.verbs("siw0", "0000:85:00.0");
    tree.write("sys/class/infiniband/siw0/node_desc", "Software iWARP stack");
    const Node node = tree.read();
    ASSERT_EQ(node.hcas.size(), 5U);
    EXPECT_TRUE(hcaNamed(node, "siw0").software);
    EXPECT_EQ(hcaNamed(node, "rxe0").pci->str(), "0000:85:00.0");
    EXPECT_EQ(distanceTo(node, 1, "rxe0"), "PIX");
    EXPECT_TRUE(hcaNamed(node, "rxe0").software);
    EXPECT_TRUE(hcaNamed(node, "rxe1").software);
    EXPECT_FALSE(hcaNamed(node, "mlx5_0").software);
    EXPECT_EQ(node.hcas[4].name, "rxe1");  // without an address: last
    EXPECT_EQ(node.hcas[4].pci, std::nullopt);
    EXPECT_EQ(distanceTo(node, 1, "rxe1"), "?");
}

TEST_F(TwoSockets, NumaNodeFromCpusWhereFirmwareGivesNone) {
    tree.write(tree.folder(kGpu1) + "/numa_node", "-1");
    tree.write(tree.folder(kGpu1) + "/local_cpulist", "4-7,12-15");
    tree.write(tree.folder(kGpu0) + "/numa_node", "-1");
    tree.write(tree.folder(kGpu0) + "/local_cpulist", "0-15");
    const Node node = tree.read();
    EXPECT_EQ(node.gpus[1].numa, 1);
    EXPECT_EQ(node.gpus[0].numa, -1);
    EXPECT_EQ(node.gpus[0].cpus.str(), "0-15");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_1"), "PIX");
    EXPECT_EQ(distanceTo(node, 0, "mlx5_0"), "?");
}

TEST_F(TwoSockets, GarbageInFilesIsNotBelieved) {
    tree.write(tree.folder(kHca0) + "/numa_node", "many");
    tree.write(SysTree::portFolder("mlx5_1") + "/state", "up");
    tree.write(SysTree::portFolder("mlx5_1") + "/rate", "fast");
    tree.write(SysTree::portFolder("mlx5_1") + "/lid", "0xzz");
    tree.write(SysTree::portFolder("mlx5_1") + "/link_layer", "Token Ring");
    ::mkfifo(tree.path(SysTree::portFolder("mlx5_1") + "/sm_lid.new").c_str(), 0600);
    std::filesystem::rename(tree.path(SysTree::portFolder("mlx5_1") + "/sm_lid.new"),
                            tree.path(SysTree::portFolder("mlx5_1") + "/sm_lid"));
    tree.pci("pci0000:00", "0000:00:1f.0", "no class", "0x10de");
    tree.write("sys/bus/pci/devices/not-an-address/class", "0x030200");
    tree.write("sys/class/infiniband/mlx5_1/node_guid", std::string("a\x1b[31mb"));
    const Node node = tree.read();
    EXPECT_EQ(node.gpus.size(), 2U);
    const Hca& hca = hcaNamed(node, "mlx5_1");
    EXPECT_EQ(hca.numa, -1);
    EXPECT_EQ(hca.state, PortState::Unknown);
    EXPECT_EQ(hca.rate_gbps, 0);
    EXPECT_EQ(hca.lid, 0);
    EXPECT_EQ(hca.sm_lid, 0);
    EXPECT_EQ(hca.link_layer, LinkLayer::Unknown);
    EXPECT_EQ(hca.node_guid, "a?[31mb");
}

TEST_F(TwoSockets, IsNotFlatEvenAsAVirtualMachine) {
    tree.write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme hypervisor lahf_lm");
    EXPECT_FALSE(tree.read().flat);
}

/// Two GPUs and two HCAs, each on a root port of its own.
class Flat : public ::testing::Test {
  protected:
    Flat() {
        tree.numa(0, "0-7", 0);
        for (int n = 1; n <= 4; ++n) {
            const bool gpu = n <= 2;
            tree.pci("pci0000:00", SysTree::address(0, n), "0x060400", "0x1b36", "0x000c");
            tree.pci(SysTree::address(0, n), SysTree::address(n, 0), gpu ? "0x030200" : "0x020700",
                     gpu ? "0x10de" : "0x15b3");
            if (!gpu) tree.verbs("mlx5_" + std::to_string(n - 3), SysTree::address(n, 0));
        }
    }
    SysTree tree;
};

TEST_F(Flat, VirtualMachineByCpuFlag) {
    tree.write("proc/cpuinfo", "flags\t\t: fpu hypervisor");
    const Node node = tree.read();
    EXPECT_EQ(distanceTo(node, 0, "mlx5_1"), "PHB");
    EXPECT_TRUE(node.flat);
    EXPECT_TRUE(noted(node, "virtual machine"));
}

TEST_F(Flat, VirtualMachineByDmi) {
    tree.write("proc/cpuinfo", "Features\t: fp asimd");
    tree.write("sys/class/dmi/id/sys_vendor", "Microsoft Corporation");
    tree.write("sys/class/dmi/id/product_name", "Virtual Machine");
    EXPECT_TRUE(noted(tree.read(), "virtual machine"));
}

TEST_F(Flat, BareMetalOfACloudIsNone) {
    tree.write("proc/cpuinfo", "flags\t\t: fpu vme");
    tree.write("sys/class/dmi/id/sys_vendor", "Amazon EC2");
    tree.write("sys/class/dmi/id/product_name", "g4dn.metal");
    const Node node = tree.read();
    EXPECT_FALSE(noted(node, "virtual machine"));
    EXPECT_TRUE(node.flat);  // still nothing to choose by: all four pairs are PHB
}

TEST(Live, EmptyTreeIsAMachineWithNothing) {
    const SysTree tree;
    const Node node = tree.read();
    EXPECT_TRUE(node.gpus.empty());
    EXPECT_TRUE(node.hcas.empty());
    EXPECT_TRUE(node.numa.empty());
    EXPECT_TRUE(node.notes.empty());
}

TEST(Live, ThisMachineHasCpus) {
    const Result<Node> node = readThisMachine();
    ASSERT_TRUE(node.ok()) << node.error().message;
    EXPECT_FALSE(node->cpus.empty());
    EXPECT_FALSE(node->numa.empty());
    EXPECT_FALSE(node->hostname.empty());
}

TEST(Live, AnotherMachineInHwlocsEnvironmentIsNotBelieved) {
    const auto file = testing::fixtures() / "hwloc-v2-four-switches.xml";
    ::setenv("HWLOC_XMLFILE", file.c_str(), 1);
    const Result<Node> node = readThisMachine();
    ::unsetenv("HWLOC_XMLFILE");
    ASSERT_TRUE(node.ok()) << node.error().message;
    EXPECT_TRUE(noted(*node, "HWLOC_XMLFILE"));
    EXPECT_NE(node->hostname, "gpu-a");
    EXPECT_FALSE(node->numa.empty());
}

}  // namespace
}  // namespace rdmatune
