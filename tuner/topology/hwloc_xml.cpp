// A machine saved by hwloc. Read here and not by hwloc's own importer, because that one (2.9) ends
// the process on a damaged file: it follows pointers to sets that an object does not have. Of the
// format only what version 1 and 2 have in common is used: objects nested as the machine is.
#include <tinyxml2.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tuner/base/text.hpp"
#include "tuner/topology/complete.hpp"
#include "tuner/topology/formats.hpp"
#include "tuner/topology/xml_text.hpp"

namespace rdmatune {
namespace {

using tinyxml2::XMLElement;

// Values of osdev_type, from hwloc's documentation of hwloc_obj_osdev_type_t.
constexpr std::string_view kNetworkDevice = "2";
constexpr std::string_view kOpenFabricsDevice = "3";

std::string_view typeOf(const XMLElement& object) {
    return attribute(object, "type");
}

/// The value of <info name="NAME" value="..."/>; empty when there is none.
std::string info(const XMLElement& object, std::string_view name) {
    for (auto* child = object.FirstChildElement("info"); child != nullptr;
         child = child->NextSiblingElement("info"))
        if (attribute(*child, "name") == name) return printable(attribute(*child, "value"));
    return {};
}

/// Calls `each` for every object directly inside.
template <class Each>
void forEachObject(const XMLElement& parent, Each each) {
    for (auto* child = parent.FirstChildElement("object"); child != nullptr;
         child = child->NextSiblingElement("object"))
        each(*child);
}

/// A set attribute; empty where it is missing or infinite ("0xf...f").
CpuSet setOf(const XMLElement& object, const char* name) {
    return CpuSet::parseMask(attribute(object, name)).value_or(CpuSet{});
}

/// The CPUs of an object, those that were offline or forbidden when it was saved included.
CpuSet allCpus(const XMLElement& object) {
    const CpuSet complete = setOf(object, "complete_cpuset");
    return complete.empty() ? setOf(object, "cpuset") : complete;
}

/// pci_type, "0302 [10de:20b0] [10de:144e] a1": class and the first pair.
struct PciType {
    std::uint32_t pci_class = 0;
    std::uint32_t vendor = 0;
    std::uint32_t device = 0;
};

PciType pciType(const XMLElement& object) {
    const std::string_view text = attribute(object, "pci_type");
    PciType type;
    const auto number = [&](std::size_t at) {
        const auto value = text.size() >= at + 4 ? parseHex(text.substr(at, 4)) : std::nullopt;
        return static_cast<std::uint32_t>(value.value_or(0));
    };
    type.pci_class = number(0);
    type.vendor = number(6);
    type.device = number(11);
    return type;
}

/// "redacted" and other placeholders that people put into files they publish are no UUIDs.
std::optional<std::string> plausibleUuid(const std::string& text) {
    if (text.starts_with("GPU-")) return text;
    const auto is_hex = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    };
    if (text.empty() || !std::ranges::all_of(text, is_hex)) return std::nullopt;
    return "GPU-" + text;
}

/// Class 0x0207 is InfiniBand; 0x0208 is Omni-Path, which has LIDs too.
LinkLayer linkLayerOf(const PciType& type, bool has_lid) {
    if (type.pci_class == 0x0207 || type.pci_class == 0x0208 || has_lid)
        return LinkLayer::InfiniBand;
    // Amazon's EFA is an Ethernet device to PCI, but neither InfiniBand nor RoCE.
    constexpr std::uint32_t kAmazon = 0x1d0f;
    if (type.pci_class == 0x0200 && type.vendor != kAmazon) return LinkLayer::Ethernet;
    return LinkLayer::Unknown;
}

PortState portState(const std::string& text) {
    if (text == "1") return PortState::Down;
    if (text == "2") return PortState::Init;
    if (text == "3") return PortState::Armed;
    if (text == "4" || text == "5") return PortState::Active;
    return PortState::Unknown;
}

/// hwloc keeps a GID table's values but not its types. The kernel enters each address once for
/// each type a RoCE port has, v1 before v2; a port with single entries has v2 alone.
void guessRoceTypes(std::vector<Gid>& gids) {
    std::map<std::string, int> left;
    for (const Gid& gid : gids) ++left[gid.value];
    for (Gid& gid : gids) gid.type = --left[gid.value] > 0 ? GidType::RoceV1 : GidType::RoceV2;
}

void readPort(const XMLElement& os, const PciType& type, Hca& hca) {
    const std::string prefix = "Port" + std::to_string(hca.port);
    hca.state = portState(info(os, prefix + "State"));
    const auto lid = parseHex(info(os, prefix + "LID"));
    hca.lid = lid && *lid <= 0xffff ? static_cast<int>(*lid) : 0;
    hca.link_layer = linkLayerOf(type, hca.lid != 0);
    hca.gids_known = hca.state != PortState::Unknown;
    const std::string gid_prefix = prefix + "GID";
    for (auto* child = os.FirstChildElement("info"); child != nullptr;
         child = child->NextSiblingElement("info")) {
        const std::string_view name = attribute(*child, "name");
        if (!name.starts_with(gid_prefix)) continue;
        const auto index = parseInt<int>(name.substr(gid_prefix.size()));
        if (!index || *index < 0) continue;
        hca.gids.push_back({*index, printable(attribute(*child, "value")), {}, {}});
    }
    std::ranges::stable_sort(hca.gids, {}, &Gid::index);
    if (hca.link_layer == LinkLayer::Ethernet) guessRoceTypes(hca.gids);
}

/// The network interface of a PCI function for a port, or its only one.
std::string netdevOf(const XMLElement& function, int port) {
    std::vector<std::string> names;
    std::string match;
    forEachObject(function, [&](const XMLElement& os) {
        if (typeOf(os) != "OSDev" || attribute(os, "osdev_type") != kNetworkDevice) return;
        names.push_back(printable(attribute(os, "name")));
        if (match.empty() && parseInt<int>(info(os, "Port")) == port) match = names.back();
    });
    if (match.empty() && names.size() == 1) match = names.front();
    return match;
}

class Reader {
  public:
    explicit Reader(const std::string& name) : name_(name) {}

    Result<Node> read(const XMLElement& topology) {
        const std::string_view version = attribute(topology, "version");
        if (!version.empty() && !version.starts_with("1.") && !version.starts_with("2."))
            return xmlProblem(name_, topology,
                              "has version \"" + printable(version) + "\"; expected 1 or 2");
        const XMLElement* machine = topology.FirstChildElement("object");
        if (machine == nullptr || typeOf(*machine) != "Machine")
            return xmlProblem(name_, topology, "has no <object type=\"Machine\"> inside");
        node_.source = TopologySource::HwlocXml;
        node_.hostname = info(*machine, "HostName");
        node_.cpus = allCpus(*machine);
        readCores(*machine);
        finishCores();
        Place place;
        readDevices(*machine, place);
        if (problem_) return *problem_;
        linkVirtualFunctions(node_, virtual_functions_);
        if (slingshot_ > 0) node_.notes.push_back(slingshotNote(slingshot_));
        if (pci_functions_ == 0)
            node_.notes.emplace_back(
                "The file has no PCI devices at all; save it with `lstopo --whole-io FILE.xml`.");
        completeNode(
            node_, PathForm::Ports,
            looksVirtual(info(*machine, "DMISysVendor"), info(*machine, "DMIProductName")));
        return std::move(node_);
    }

  private:
    /// Where the walk is: CPUs of the nearest object that is no device, and the bridges passed.
    struct Place {
        CpuSet cpus;
        std::vector<PciAddress> path;
    };

    struct Package {
        int os_index = -1;
        CpuSet cpus;
    };

    /// NUMA nodes and packages, wherever they are: version 1 has packages inside NUMA nodes or
    /// the reverse, version 2 has NUMA nodes beside what they are near to.
    void readCores(const XMLElement& object) {
        const auto number = parseInt<int>(attribute(object, "os_index"));
        const std::string_view type = typeOf(object);
        if (type == "NUMANode" && number && *number >= 0) {
            const bool known =
                std::ranges::find(node_.numa, *number, &NumaNode::os_index) != node_.numa.end();
            // Memory without CPUs (a GPU's own, HBM, CXL) is no place to put a task.
            if (!allCpus(object).empty() && !known)
                node_.numa.push_back({*number, -1, allCpus(object)});
        }
        if ((type == "Package" || type == "Socket") && number && *number >= 0)
            packages_.push_back({*number, allCpus(object)});
        forEachObject(object, [&](const XMLElement& child) { readCores(child); });
    }

    void finishCores() {
        // Version 1 leaves the only NUMA node of a small machine out.
        if (node_.numa.empty() && !node_.cpus.empty()) node_.numa.push_back({0, -1, node_.cpus});
        for (NumaNode& numa : node_.numa) numa.package = packageOf(numa.cpus);
    }

    [[nodiscard]] int packageOf(const CpuSet& cpus) const {
        int found = -1;
        for (const Package& package : packages_) {
            if ((package.cpus & cpus).empty()) continue;
            if (found >= 0) return -1;
            found = package.os_index;
        }
        return found;
    }

    /// The NUMA node of these CPUs; -1 when they are of several. Nodes with the same CPUs (two
    /// kinds of memory) count as the first of them.
    [[nodiscard]] int numaOf(const CpuSet& cpus) const {
        const NumaNode* found = nullptr;
        for (const NumaNode& numa : node_.numa) {
            if ((numa.cpus & cpus).empty()) continue;
            if (found != nullptr && found->cpus != numa.cpus) return -1;
            if (found == nullptr || numa.os_index < found->os_index) found = &numa;
        }
        return found == nullptr ? -1 : found->os_index;
    }

    void readDevices(const XMLElement& object, Place& place) {
        const std::string_view type = typeOf(object);
        if (problem_) return;
        if (type == "Bridge") return readBridge(object, place);
        if (type == "PCIDev") return readFunction(object, place);
        if (type == "OSDev") {
            if (isOpenFabrics(object)) readHca(object, nullptr, {}, place);
            return;
        }
        Place inside = place;
        if (const CpuSet cpus = setOf(object, "cpuset"); !cpus.empty()) inside.cpus = cpus;
        forEachObject(object, [&](const XMLElement& child) { readDevices(child, inside); });
    }

    /// A host bridge ("0-1") has no address and is no part of a path.
    void readBridge(const XMLElement& object, Place& place) {
        const bool is_port = attribute(object, "bridge_type").starts_with("1-");
        if (is_port) {
            const auto address = addressOf(object);
            if (!address) return;
            const PciType type = pciType(object);
            node_.bridges.push_back({*address, vendorDevice(type.vendor, type.device), {}});
            place.path.push_back(*address);
        }
        forEachObject(object, [&](const XMLElement& child) { readDevices(child, place); });
        if (is_port && !place.path.empty()) place.path.pop_back();
    }

    std::optional<PciAddress> addressOf(const XMLElement& object) {
        const auto address = PciAddress::parse(attribute(object, "pci_busid"));
        if (!address)
            problem_ = xmlProblem(name_, object,
                                  "needs a pci_busid such as \"0000:03:00.0\", not \"" +
                                      printable(attribute(object, "pci_busid")) + '"');
        return address;
    }

    static bool isOpenFabrics(const XMLElement& os) {
        return attribute(os, "osdev_type") == kOpenFabricsDevice;
    }

    void readFunction(const XMLElement& object, Place& place) {
        ++pci_functions_;
        const auto address = addressOf(object);
        if (!address) return;
        const PciType type = pciType(object);
        if (isComputeGpu(type.vendor, type.pci_class))
            node_.gpus.push_back(readGpu(object, *address, type, place));
        if (isNetwork(type.pci_class) && isNonVerbsFabricNic(type.vendor)) ++slingshot_;
        if (isVirtualFunction(type.vendor, type.device)) virtual_functions_.insert(*address);
        forEachObject(object, [&](const XMLElement& child) {
            if (typeOf(child) == "OSDev" && isOpenFabrics(child))
                readHca(child, &object, *address, place);
        });
    }

    Gpu readGpu(const XMLElement& function, const PciAddress& address, const PciType& type,
                const Place& place) const {
        Gpu gpu;
        gpu.pci = address;
        gpu.vendor = gpuVendor(type.vendor);
        gpu.pci_path = place.path;
        gpu.cpus = place.cpus;
        gpu.numa = numaOf(place.cpus);
        gpu.package = packageOf(place.cpus);
        forEachObject(function, [&](const XMLElement& os) {
            for (const char* key : {"NVIDIAUUID", "AMDUUID"})
                if (!gpu.uuid) gpu.uuid = plausibleUuid(info(os, key));
            if (gpu.model.empty()) gpu.model = info(os, "GPUModel");
            const std::string_view name = attribute(os, "name");
            if (!name.starts_with("renderD") || gpu.vendor == "nvidia") return;
            if (const auto number = parseInt<int>(name.substr(7)); number && *number >= 128)
                gpu.minor = *number - 128;
        });
        if (gpu.model.empty()) gpu.model = info(function, "PCIDevice");
        return gpu;
    }

    /// `function` is null for a device that hangs on nothing (software RDMA).
    void readHca(const XMLElement& os, const XMLElement* function, const PciAddress& address,
                 const Place& place) {
        Hca hca;
        hca.name = printable(attribute(os, "name"));
        if (hca.name.empty()) {
            problem_ = xmlProblem(name_, os, "is an OpenFabrics device and needs a name");
            return;
        }
        hca.node_guid = info(os, "NodeGUID");
        hca.sys_image_guid = info(os, "SysImageGUID");
        hca.is_bond = hca.name.find("_bond_") != std::string::npos;
        hca.software = function == nullptr;
        PciType type;
        if (function != nullptr) {
            type = pciType(*function);
            hca.pci = address;
            hca.pci_path = place.path;
            hca.numa = numaOf(place.cpus);
            hca.package = packageOf(place.cpus);
            constexpr double kBitsPerByte = 8;  // hwloc counts GB/s
            const auto speed = parseReal(attribute(*function, "pci_link_speed"));
            hca.pcie_gbps = speed && *speed > 0 && *speed < 1e6 ? kBitsPerByte * *speed : 0;
        }
        std::vector<int> ports;
        constexpr int kMostPorts = 8;
        for (int port = 1; port <= kMostPorts; ++port)
            if (!info(os, "Port" + std::to_string(port) + "State").empty()) ports.push_back(port);
        if (ports.empty()) ports.push_back(1);
        for (const int port : ports) {
            Hca one = hca;
            one.port = port;
            readPort(os, type, one);
            if (function != nullptr) one.netdev = netdevOf(*function, port);
            node_.hcas.push_back(std::move(one));
        }
    }

    const std::string& name_;
    Node node_;
    std::vector<Package> packages_;
    std::optional<Error> problem_;
    std::set<PciAddress> virtual_functions_;
    int pci_functions_ = 0;
    int slingshot_ = 0;
};

}  // namespace

Result<Node> readHwlocXml(std::string_view text, const std::string& name) {
    tinyxml2::XMLDocument document;
    const auto topology = parseXml(document, text, name, "topology");
    if (!topology) return topology.error();
    return Reader(name).read(**topology);
}

}  // namespace rdmatune
