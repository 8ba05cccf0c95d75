// A Node as JSON, which is its form between processes, for `--json`, and for saved machines.
#include <nlohmann/json.hpp>

#include "tuner/base/text.hpp"
#include "tuner/topology/json_enums.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune {
namespace {

using Json = nlohmann::ordered_json;

Json optionalText(const std::optional<PciAddress>& pci) {
    return pci ? Json(pci->str()) : Json(nullptr);
}

Json toJson(const std::vector<PciAddress>& path) {
    Json out = Json::array();
    for (const PciAddress& pci : path) out.push_back(pci.str());
    return out;
}

Json toJson(const PcieLink& link) {
    return {{"speed_gts", link.speed_gts},
            {"width", link.width},
            {"max_speed_gts", link.max_speed_gts},
            {"max_width", link.max_width}};
}

Json toJson(const Gid& gid) {
    return {{"index", gid.index},
            {"value", gid.value},
            {"type", toString(gid.type)},
            {"netdev", gid.netdev}};
}

Json toJson(const Gpu& gpu) {
    return {{"index", gpu.index},
            {"pci", optionalText(gpu.pci)},
            {"uuid", gpu.uuid ? Json(*gpu.uuid) : Json(nullptr)},
            {"minor", gpu.minor ? Json(*gpu.minor) : Json(nullptr)},
            {"vendor", gpu.vendor},
            {"model", gpu.model},
            {"numa", gpu.numa},
            {"package", gpu.package},
            {"cpus", gpu.cpus.str()},
            {"pci_path", toJson(gpu.pci_path)},
            {"link", toJson(gpu.link)},
            {"mig", gpu.mig}};
}

Json toJson(const Hca& hca) {
    Json gids = Json::array();
    for (const Gid& gid : hca.gids) gids.push_back(toJson(gid));
    return {{"name", hca.name},
            {"port", hca.port},
            {"pci", optionalText(hca.pci)},
            {"link_layer", toString(hca.link_layer)},
            {"state", toString(hca.state)},
            {"rate_gbps", hca.rate_gbps},
            {"pcie_gbps", hca.pcie_gbps},
            {"lid", hca.lid},
            {"sm_lid", hca.sm_lid},
            {"gids_known", hca.gids_known},
            {"gids", std::move(gids)},
            {"netdev", hca.netdev},
            {"node_guid", hca.node_guid},
            {"sys_image_guid", hca.sys_image_guid},
            {"numa", hca.numa},
            {"package", hca.package},
            {"pci_path", toJson(hca.pci_path)},
            {"link", toJson(hca.link)},
            {"physical_function", optionalText(hca.physical_function)},
            {"has_vfs", hca.has_vfs},
            {"bond_master", hca.bond_master},
            {"is_bond", hca.is_bond},
            {"software", hca.software},
            {"open_errno", hca.open_errno}};
}

}  // namespace

std::string nodeToJson(const Node& node, int indent) {
    Json out = {{"rdma_tune_node", kNodeJsonVersion},
                {"hostname", node.hostname},
                {"source", toString(node.source)},
                {"flat", node.flat},
                {"cpus", node.cpus.str()}};
    for (const char* list : {"numa", "gpus", "hcas", "bridges", "distance"})
        out[list] = Json::array();
    for (const NumaNode& numa : node.numa)
        out["numa"].push_back(
            {{"os_index", numa.os_index}, {"package", numa.package}, {"cpus", numa.cpus.str()}});
    for (const Gpu& gpu : node.gpus) out["gpus"].push_back(toJson(gpu));
    for (const Hca& hca : node.hcas) out["hcas"].push_back(toJson(hca));
    for (const PciBridge& bridge : node.bridges)
        out["bridges"].push_back({{"pci", bridge.pci.str()},
                                  {"vendor_device", bridge.vendor_device},
                                  {"link", toJson(bridge.link)}});
    for (const auto& row : node.distance) {
        Json cells = Json::array();
        for (const Distance distance : row) cells.push_back(toString(distance));
        out["distance"].push_back(std::move(cells));
    }
    out["notes"] = node.notes;
    // Text from a driver may be no UTF-8; it must not stop a job.
    return out.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rdmatune
