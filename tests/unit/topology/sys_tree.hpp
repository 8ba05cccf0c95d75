// A made-up /sys, /proc and /dev in a folder of its own, for tests of the reader of live machines.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tuner/topology/read.hpp"

namespace rdmatune::testing {

/// Files are made as they are asked for; the folder goes with the object.
class SysTree {
  public:
    SysTree() {
        std::string name = (std::filesystem::temp_directory_path() / "rdma-tune-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary folder";
        root_ = name;
    }
    ~SysTree() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }
    SysTree(const SysTree&) = delete;
    SysTree& operator=(const SysTree&) = delete;

    [[nodiscard]] SystemRoots roots() const {
        return {(root_ / "sys").string(), (root_ / "proc").string(), (root_ / "dev").string()};
    }

    [[nodiscard]] std::filesystem::path path(const std::string& relative) const {
        return root_ / relative;
    }

    void write(const std::string& relative, const std::string& text) const {
        std::filesystem::create_directories((root_ / relative).parent_path());
        std::ofstream(root_ / relative) << text << '\n';
    }

    void link(const std::string& relative, const std::filesystem::path& target) const {
        std::filesystem::create_directories((root_ / relative).parent_path());
        std::filesystem::create_directory_symlink(target, root_ / relative);
    }

    /// A NUMA node with its CPUs, all of one package.
    void numa(int number, const std::string& cpus, int package) const {
        write("sys/devices/system/node/node" + std::to_string(number) + "/cpulist", cpus);
        for (const int cpu : CpuSet::parse(cpus)->list())
            write("sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                      "/topology/physical_package_id",
                  std::to_string(package));
    }

    /// A PCI function below `parent` (the address of one added before, or a root bus such as
    /// "pci0000:10"), class in full ("0x030200"). Returns its folder below the root.
    std::string pci(const std::string& parent, const std::string& address,
                    const std::string& full_class, const std::string& vendor,
                    const std::string& device = "0x0001", int numa = 0) {
        const auto it = folders_.find(parent);
        const std::string above = it == folders_.end() ? "sys/devices/" + parent : it->second;
        const std::string folder = above + '/' + address;
        folders_[address] = folder;
        write(folder + "/class", full_class);
        write(folder + "/vendor", vendor);
        write(folder + "/device", device);
        write(folder + "/numa_node", std::to_string(numa));
        link("sys/bus/pci/devices/" + address, root_ / folder);
        return folder;
    }

    /// A root port, a switch below it with `downstream` ports. Buses `bus`, bus+1 and bus+2; the
    /// port for device n is "0000:<bus+2>:0n.0".
    void pcieSwitch(int bus, int downstream, int numa) {
        const std::string root = address(bus, 1);
        pci("pci0000:" + hex(bus), root, "0x060400", "0x8086", "0x352a", numa);
        pci(root, address(bus + 1, 0), "0x060400", "0x1000", "0xc030", numa);
        for (int n = 0; n < downstream; ++n)
            pci(address(bus + 1, 0), address(bus + 2, n), "0x060400", "0x1000", "0xc030", numa);
    }

    static std::string address(int bus, int device, int function = 0) {
        return "0000:" + hex(bus) + ":" + hex(device) + "." + std::to_string(function);
    }

    /// A verbs device on a PCI function, with one active InfiniBand port of 400 Gbit/s.
    void verbs(const std::string& name, const std::string& pci_address, int port = 1) const {
        const std::string device = "sys/class/infiniband/" + name;
        if (!std::filesystem::exists(root_ / device / "device") && folders_.contains(pci_address))
            link(device + "/device", root_ / folders_.at(pci_address));
        write(device + "/node_guid", "0c42:a103:0000:0001");
        write(device + "/sys_image_guid", "0c42:a103:0000:0001");
        const std::string at = portFolder(name, port);
        write(at + "/link_layer", "InfiniBand");
        write(at + "/state", "4: ACTIVE");
        write(at + "/rate", "400 Gb/sec (4X NDR)");
        write(at + "/lid", "0x1f");
        write(at + "/sm_lid", "0x1");
        write(at + "/gids/0", "fe80:0000:0000:0000:0c42:a103:0000:0001");
        write(at + "/gid_attrs/types/0", "IB/RoCE v1");
    }

    static std::string portFolder(const std::string& name, int port = 1) {
        return "sys/class/infiniband/" + name + "/ports/" + std::to_string(port);
    }

    void gid(const std::string& name, int index, const std::string& value, const std::string& type,
             const std::string& netdev) const {
        const std::string number = std::to_string(index);
        write(portFolder(name) + "/gids/" + number, value);
        write(portFolder(name) + "/gid_attrs/types/" + number, type);
        if (!netdev.empty()) write(portFolder(name) + "/gid_attrs/ndevs/" + number, netdev);
    }

    [[nodiscard]] const std::string& folder(const std::string& address) const {
        return folders_.at(address);
    }

    [[nodiscard]] Node read() const {
        const Result<Node> node = readThisMachine(roots());
        EXPECT_TRUE(node.ok()) << node.error().message;
        return node.ok() ? *node : Node{};
    }

  private:
    static std::string hex(int number) {
        constexpr const char* kDigits = "0123456789abcdef";
        return {kDigits[number >> 4 & 15], kDigits[number & 15]};
    }

    std::filesystem::path root_;
    std::map<std::string, std::string> folders_;
};

}  // namespace rdmatune::testing
