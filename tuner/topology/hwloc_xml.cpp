// A machine saved by hwloc, through hwloc's own importer, which knows both versions of the XML.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "tuner/base/text.hpp"
#include "tuner/topology/complete.hpp"
#include "tuner/topology/formats.hpp"
#include "tuner/topology/hwloc_handle.hpp"
#include "tuner/topology/pci_kind.hpp"

namespace rdmatune {
namespace {

using PciAttributes = decltype(hwloc_obj_attr_u::pcidev);

std::string info(hwloc_obj_t object, const char* name) {
    const char* value = hwloc_obj_get_info_by_name(object, name);
    return value == nullptr ? std::string() : printable(value);
}

PciAddress addressOf(const PciAttributes& pci) {
    return {pci.domain, pci.bus, pci.dev, static_cast<std::uint8_t>(pci.func)};
}

bool isBridgeWithAddress(hwloc_obj_t object) {
    return object->type == HWLOC_OBJ_BRIDGE &&
           object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

std::vector<PciAddress> pathTo(hwloc_obj_t device) {
    std::vector<PciAddress> path;
    for (hwloc_obj_t up = device->parent; up != nullptr; up = up->parent)
        if (isBridgeWithAddress(up)) path.push_back(addressOf(up->attr->bridge.upstream.pci));
    std::ranges::reverse(path);
    return path;
}

/// NUMA node, package and CPUs of the part of the machine that a PCI function hangs on.
struct Locality {
    int numa = -1;
    int package = -1;
    CpuSet cpus;
};

Locality localityOf(hwloc_topology_t topology, hwloc_obj_t device) {
    Locality locality;
    const hwloc_obj_t anchor = hwloc_get_non_io_ancestor_obj(topology, device);
    if (anchor == nullptr) return locality;
    locality.cpus = toCpuSet(anchor->cpuset);
    // Under the machine itself or a package of several NUMA nodes there is no one answer.
    if (anchor->nodeset != nullptr && hwloc_bitmap_weight(anchor->nodeset) == 1)
        locality.numa = hwloc_bitmap_first(anchor->nodeset);
    locality.package = anchor->type == HWLOC_OBJ_PACKAGE ? static_cast<int>(anchor->os_index)
                                                         : packageOf(topology, anchor);
    return locality;
}

/// "redacted" and other placeholders that people put into files they publish are no UUIDs.
std::optional<std::string> plausibleUuid(std::string text) {
    if (text.starts_with("GPU-")) return text;
    const bool hex = !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    });
    if (!hex) return std::nullopt;
    return "GPU-" + text;
}

Gpu readGpu(hwloc_topology_t topology, hwloc_obj_t device) {
    const auto& pci = device->attr->pcidev;
    Gpu gpu;
    gpu.pci = addressOf(pci);
    gpu.vendor = gpuVendor(pci.vendor_id);
    gpu.pci_path = pathTo(device);
    const Locality locality = localityOf(topology, device);
    gpu.numa = locality.numa;
    gpu.package = locality.package;
    gpu.cpus = locality.cpus;
    for (hwloc_obj_t os = device->io_first_child; os != nullptr; os = os->next_sibling) {
        if (os->type != HWLOC_OBJ_OS_DEVICE) continue;
        for (const char* key : {"NVIDIAUUID", "AMDUUID"})
            if (!gpu.uuid) gpu.uuid = plausibleUuid(info(os, key));
        if (gpu.model.empty()) gpu.model = info(os, "GPUModel");
        const std::string_view name = os->name == nullptr ? "" : os->name;
        if (name.starts_with("renderD") && gpu.vendor != "nvidia")
            if (const auto number = parseInt<int>(name.substr(7)); number && *number >= 128)
                gpu.minor = *number - 128;
    }
    if (gpu.model.empty()) gpu.model = info(device, "PCIDevice");
    return gpu;
}

/// Class 0x0207 is InfiniBand; 0x0208 is Omni-Path, which speaks InfiniBand's management too.
LinkLayer linkLayerOf(const PciAttributes& pci, bool has_lid) {
    if (pci.class_id == 0x0207 || pci.class_id == 0x0208 || has_lid) return LinkLayer::InfiniBand;
    // Amazon's EFA is an Ethernet device to PCI, but neither InfiniBand nor RoCE.
    constexpr unsigned kAmazon = 0x1d0f;
    if (pci.class_id == 0x0200 && pci.vendor_id != kAmazon) return LinkLayer::Ethernet;
    return LinkLayer::Unknown;
}

PortState portState(const std::string& text) {
    if (text == "1") return PortState::Down;
    if (text == "2") return PortState::Init;
    if (text == "3") return PortState::Armed;
    if (text == "4" || text == "5") return PortState::Active;
    return PortState::Unknown;
}

int hexOrZero(const std::string& text) {
    const char* digits = text.starts_with("0x") ? text.c_str() + 2 : text.c_str();
    int value = 0;
    const auto [end, error] = std::from_chars(digits, text.data() + text.size(), value, 16);
    return error == std::errc{} && value >= 0 && value <= 0xffff ? value : 0;
}

/// hwloc keeps a GID table's values but not its types. The kernel enters each address once for
/// each type a RoCE port has, v1 before v2; a port with single entries has v2 alone.
void guessRoceTypes(std::vector<Gid>& gids) {
    std::map<std::string, int> left;
    for (const Gid& gid : gids) ++left[gid.value];
    for (Gid& gid : gids) gid.type = --left[gid.value] > 0 ? GidType::RoceV1 : GidType::RoceV2;
}

void readPort(hwloc_obj_t os, const PciAttributes& pci, Hca& hca) {
    const std::string prefix = "Port" + std::to_string(hca.port);
    hca.state = portState(info(os, (prefix + "State").c_str()));
    hca.lid = hexOrZero(info(os, (prefix + "LID").c_str()));
    hca.link_layer = linkLayerOf(pci, hca.lid != 0);
    hca.gids_known = hca.state != PortState::Unknown;
    const std::string gid_prefix = prefix + "GID";
    for (unsigned i = 0; i < os->infos_count; ++i) {
        const std::string_view name = os->infos[i].name;
        if (!name.starts_with(gid_prefix)) continue;
        const auto index = parseInt<int>(name.substr(gid_prefix.size()));
        if (!index || *index < 0) continue;
        Gid gid;
        gid.index = *index;
        gid.value = printable(os->infos[i].value);
        hca.gids.push_back(std::move(gid));
    }
    std::ranges::sort(hca.gids, {}, &Gid::index);
    if (hca.link_layer == LinkLayer::Ethernet) guessRoceTypes(hca.gids);
}

/// The network interface beside an RDMA device whose port number is `port`, or the only one.
std::string netdevBeside(hwloc_obj_t device, int port) {
    std::vector<std::string> names;
    for (hwloc_obj_t os = device->io_first_child; os != nullptr; os = os->next_sibling) {
        if (os->type != HWLOC_OBJ_OS_DEVICE || os->name == nullptr ||
            os->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK)
            continue;
        if (parseInt<int>(info(os, "Port")) == port) return printable(os->name);
        names.push_back(printable(os->name));
    }
    return names.size() == 1 ? names.front() : std::string();
}

void readHca(hwloc_topology_t topology, hwloc_obj_t os, Node& node) {
    hwloc_obj_t device = os->parent;
    while (device != nullptr && device->type != HWLOC_OBJ_PCI_DEVICE) device = device->parent;
    Hca hca;
    hca.name = printable(os->name == nullptr ? "" : os->name);
    hca.node_guid = info(os, "NodeGUID");
    hca.sys_image_guid = info(os, "SysImageGUID");
    hca.is_bond = hca.name.find("_bond_") != std::string::npos;
    PciAttributes pci{};
    if (device != nullptr) {
        pci = device->attr->pcidev;
        hca.pci = addressOf(pci);
        hca.pci_path = pathTo(device);
        const Locality locality = localityOf(topology, device);
        hca.numa = locality.numa;
        hca.package = locality.package;
    }
    constexpr int kMostPorts = 8;
    bool any = false;
    for (int port = 1; port <= kMostPorts; ++port) {
        const std::string key = "Port" + std::to_string(port) + "State";
        if (hwloc_obj_get_info_by_name(os, key.c_str()) == nullptr) continue;
        Hca one = hca;
        one.port = port;
        readPort(os, pci, one);
        if (device != nullptr) one.netdev = netdevBeside(device, port);
        node.hcas.push_back(std::move(one));
        any = true;
    }
    if (any) return;
    readPort(os, pci, hca);
    node.hcas.push_back(std::move(hca));
}

void readBridge(hwloc_obj_t object, Node& node) {
    const auto& pci = object->attr->bridge.upstream.pci;
    PciBridge bridge;
    bridge.pci = addressOf(pci);
    bridge.vendor_device = vendorDevice(pci.vendor_id, pci.device_id);
    node.bridges.push_back(std::move(bridge));
}

Node readTopology(hwloc_topology_t topology) {
    Node node;
    node.source = TopologySource::HwlocXml;
    const hwloc_obj_t machine = hwloc_get_root_obj(topology);
    node.hostname = info(machine, "HostName");
    copyCores(topology, node);
    int slingshot = 0;
    for (hwloc_obj_t pci = hwloc_get_next_pcidev(topology, nullptr); pci != nullptr;
         pci = hwloc_get_next_pcidev(topology, pci)) {
        const auto& attr = pci->attr->pcidev;
        if (isComputeGpu(attr.vendor_id, attr.class_id))
            node.gpus.push_back(readGpu(topology, pci));
        if (isNetwork(attr.class_id) && isNonVerbsFabricNic(attr.vendor_id)) ++slingshot;
    }
    for (hwloc_obj_t os = hwloc_get_next_osdev(topology, nullptr); os != nullptr;
         os = hwloc_get_next_osdev(topology, os))
        if (os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) readHca(topology, os, node);
    for (hwloc_obj_t bridge = hwloc_get_next_bridge(topology, nullptr); bridge != nullptr;
         bridge = hwloc_get_next_bridge(topology, bridge))
        if (isBridgeWithAddress(bridge)) readBridge(bridge, node);
    if (slingshot > 0) node.notes.push_back(slingshotNote(slingshot));
    if (node.gpus.empty() && node.hcas.empty() &&
        hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PCI_DEVICE) == 0)
        node.notes.emplace_back(
            "The file has no PCI devices at all; save it with `lstopo --whole-io FILE.xml`.");
    const bool virtual_machine =
        looksVirtual(info(machine, "DMISysVendor"), info(machine, "DMIProductName"));
    completeNode(node, PathForm::Ports, virtual_machine);
    return node;
}

}  // namespace

Result<Node> readHwlocXml(std::string_view text, const std::string& name) {
    const HwlocHandle handle;
    const hwloc_topology_t topology = handle.get();
    if (topology == nullptr) return Error{name + ": hwloc cannot start: out of memory"};
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    const std::string buffer(text);
    // The importer wants the terminating zero counted.
    const int size = static_cast<int>(buffer.size()) + 1;
    if (hwloc_topology_set_xmlbuffer(topology, buffer.c_str(), size) != 0 ||
        hwloc_topology_load(topology) != 0)
        return Error{name + ": hwloc cannot import this XML (" + std::strerror(errno) +
                     "); expected a whole file as `lstopo FILE.xml` writes it"};
    return readTopology(topology);
}

}  // namespace rdmatune
