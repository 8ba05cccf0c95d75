#include "tuner/topology/sys_hca.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

#include "tuner/base/text.hpp"
#include "tuner/topology/pci_kind.hpp"
#include "tuner/topology/sys_files.hpp"

namespace rdmatune {
namespace fs = std::filesystem;
namespace {

LinkLayer parseLinkLayer(std::string_view text) {
    if (text == "InfiniBand") return LinkLayer::InfiniBand;
    if (text == "Ethernet") return LinkLayer::Ethernet;
    return LinkLayer::Unknown;
}

/// The number in front of "4: ACTIVE"; 5 is ACTIVE_DEFER, in which traffic still flows.
PortState parsePortState(std::optional<int> number) {
    switch (number.value_or(0)) {
        case 1:
            return PortState::Down;
        case 2:
            return PortState::Init;
        case 3:
            return PortState::Armed;
        case 4:
        case 5:
            return PortState::Active;
        default:
            return PortState::Unknown;
    }
}

/// "400 Gb/sec (4X NDR)": 400.
double parseRate(std::string_view text) {
    const auto value = parseReal(text.substr(0, text.find(' ')));
    return value && *value > 0 && *value < 1e6 ? *value : 0;
}

GidType parseGidType(std::string_view text, LinkLayer layer) {
    if (text == "RoCE v2") return GidType::RoceV2;
    // The kernel calls both InfiniBand and RoCE v1 "IB/RoCE v1".
    return layer == LinkLayer::Ethernet ? GidType::RoceV1 : GidType::InfiniBand;
}

std::vector<Gid> readGids(const fs::path& port, LinkLayer layer) {
    constexpr int kMostGids = 1024;
    // The kernel gives a new GID the first free place, so a long empty stretch is the end. Tables
    // have 256 places (mlx5) to 1024 (rxe): reading all of them takes longer than all the rest.
    constexpr int kEmptyStretch = 64;
    int empty = 0;
    constexpr std::string_view kZero = "0000:0000:0000:0000:0000:0000:0000:0000";
    std::vector<Gid> gids;
    for (int index = 0; index < kMostGids; ++index) {
        const std::string number = std::to_string(index);
        const auto value = readSmall(port / "gids" / number);
        if (!value || value->empty() || *value == kZero) {
            if (++empty == kEmptyStretch) break;
            continue;
        }
        empty = 0;
        Gid gid;
        gid.index = index;
        gid.value = printable(*value);
        gid.type = parseGidType(readSmall(port / "gid_attrs/types" / number).value_or(""), layer);
        gid.netdev = printable(readSmall(port / "gid_attrs/ndevs" / number).value_or(""));
        gids.push_back(std::move(gid));
    }
    return gids;
}

/// The interface of a port: dev_port counts a card's ports from 0.
std::string findNetdev(const fs::path& function_directory, int port) {
    const auto names = listNames(function_directory / "net");
    for (const std::string& name : names)
        if (readNumber(function_directory / "net" / name / "dev_port") == port - 1)
            return printable(name);
    return names.size() == 1 ? printable(names.front()) : std::string();
}

/// The interface behind most of the port's GIDs is the first one's.
std::string netdevOfGids(const std::vector<Gid>& gids) {
    for (const Gid& gid : gids)
        if (!gid.netdev.empty()) return gid.netdev;
    return {};
}

/// Name of each verbs device -> its /dev/infiniband node's name, uverbsN.
std::map<std::string, std::string> readUverbs(const fs::path& sys) {
    std::map<std::string, std::string> names;
    const fs::path verbs = sys / "class/infiniband_verbs";
    for (const std::string& name : listNames(verbs))
        if (name.starts_with("uverbs"))
            if (const auto device = readSmall(verbs / name / "ibdev")) names.emplace(*device, name);
    return names;
}

/// errno of opening the device as verbs would; 0 when it opened.
int tryOpen(const fs::path& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno;
    ::close(fd);
    return 0;
}

/// Reads what all ports of one device share.
class DeviceReader {
  public:
    DeviceReader(const SystemRoots& roots, const PciFunctions& functions)
        : roots_(roots),
          functions_(functions),
          uverbs_(readUverbs(roots.sys)),
          // Saved trees often leave uverbs out; a running machine without it cannot do verbs.
          uverbs_told_(!uverbs_.empty() || roots.sys == SystemRoots{}.sys) {}

    [[nodiscard]] Hca read(const std::string& name) const {
        const fs::path device = fs::path(roots_.sys) / "class/infiniband" / name;
        Hca hca;
        hca.name = printable(name);
        hca.node_guid = printable(readSmall(device / "node_guid").value_or(""));
        hca.sys_image_guid = printable(readSmall(device / "sys_image_guid").value_or(""));
        hca.is_bond = name.find("_bond_") != std::string::npos;
        hca.software = isSoftware(device);
        if (const PciFunction* function = functionOf(device)) {
            hca.pci = function->address;
            hca.numa = function->numa;
            hca.pci_path = function->path;
            hca.link = readPcieLink(function->directory);
            hca.physical_function = PciAddress::parse(linkName(function->directory / "physfn"));
            hca.has_vfs = readNumber(function->directory / "sriov_numvfs").value_or(0) > 0 ||
                          !linkName(function->directory / "virtfn0").empty();
        }
        if (const auto it = uverbs_.find(name); it != uverbs_.end())
            hca.open_errno = tryOpen(fs::path(roots_.dev) / "infiniband" / it->second);
        else if (uverbs_told_)
            hca.open_errno = ENODEV;
        return hca;
    }

  private:
    /// The PCI function of a verbs device: its own, or that of the interface it runs on.
    [[nodiscard]] const PciFunction* functionOf(const fs::path& device) const {
        if (const PciFunction* own = functionAt(device / "device")) return own;
        const auto interface = readSmall(device / "parent");
        if (!interface || interface->empty()) return nullptr;
        return functionAt(fs::path(roots_.sys) / "class/net" / *interface / "device");
    }

    /// rxe names the interface that it runs on in `parent`; siw says what it is. A device of
    /// hardware hangs on a bus.
    static bool isSoftware(const fs::path& device) {
        std::error_code failed;
        if (!fs::exists(device / "device", failed)) return true;
        return fs::exists(device / "parent", failed) ||
               readSmall(device / "node_desc").value_or("").starts_with("Software");
    }

    [[nodiscard]] const PciFunction* functionAt(const fs::path& link) const {
        const auto target = resolved(link);
        if (!target) return nullptr;
        const auto addresses = pciComponents(*target);
        if (addresses.empty()) return nullptr;
        const auto it = functions_.find(addresses.back());
        return it == functions_.end() ? nullptr : &it->second;
    }

    const SystemRoots& roots_;
    const PciFunctions& functions_;
    std::map<std::string, std::string> uverbs_;
    bool uverbs_told_;
};

void readPort(const SystemRoots& roots, const fs::path& port, const PciFunctions& functions,
              Hca& hca) {
    hca.link_layer = parseLinkLayer(readSmall(port / "link_layer").value_or(""));
    hca.state = parsePortState(readNumber(port / "state"));
    hca.rate_gbps = parseRate(readSmall(port / "rate").value_or(""));
    hca.lid = static_cast<int>(readHex(port / "lid").value_or(0) & 0xffffU);
    hca.sm_lid = static_cast<int>(readHex(port / "sm_lid").value_or(0) & 0xffffU);
    hca.gids = readGids(port, hca.link_layer);
    std::error_code error;
    hca.gids_known = fs::is_directory(port / "gids", error);
    hca.netdev = netdevOfGids(hca.gids);
    if (hca.netdev.empty() && hca.pci)
        if (const auto it = functions.find(*hca.pci); it != functions.end())
            hca.netdev = findNetdev(it->second.directory, hca.port);
    if (hca.netdev.empty()) return;
    const fs::path net = fs::path(roots.sys) / "class/net" / hca.netdev;
    hca.is_bond = hca.is_bond || fs::is_directory(net / "bonding", error);
    // A bridge or a team may be a master as well; only a bond carries RoCE as one device.
    if (fs::is_directory(net / "master/bonding", error))
        hca.bond_master = printable(linkName(net / "master"));
}

}  // namespace

void readHcas(const SystemRoots& roots, const PciFunctions& functions, Node& node) {
    const DeviceReader reader(roots, functions);
    const fs::path devices = fs::path(roots.sys) / "class/infiniband";
    for (const std::string& name : listNames(devices)) {
        const Hca device = reader.read(name);
        std::size_t ports = 0;
        for (const std::string& port : listNames(devices / name / "ports")) {
            const auto number = parseInt<int>(port);
            if (!number || *number < 1) continue;
            Hca hca = device;
            hca.port = *number;
            readPort(roots, devices / name / "ports" / port, functions, hca);
            node.hcas.push_back(std::move(hca));
            ++ports;
        }
        if (ports == 0)
            node.notes.push_back("RDMA device " + device.name + " has no ports and is left out.");
    }
}

}  // namespace rdmatune
