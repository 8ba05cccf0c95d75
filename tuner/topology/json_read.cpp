#include <nlohmann/json.hpp>

#include "tuner/topology/json_enums.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune {
namespace {

using Json = nlohmann::json;

/// What is wrong with a value, and where: carried by an exception only as far as nodeFromJson.
struct Wrong {
    std::string where;
    std::string expected;
};

/// A JSON object whose members are taken one by one; errors know the way down to them.
class Object {
  public:
    Object(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
        if (!json.is_object()) throw Wrong{where_, "an object"};
    }

    [[nodiscard]] std::string at(const char* key) const { return where_ + '.' + key; }

    [[nodiscard]] const Json* find(const char* key) const {
        const auto it = json_.find(key);
        return it == json_.end() || it->is_null() ? nullptr : &*it;
    }

    void take(const char* key, std::string& out) const {
        if (const Json* value = find(key)) {
            if (!value->is_string()) throw Wrong{at(key), "text"};
            out = value->get<std::string>();
        }
    }

    void take(const char* key, bool& out) const {
        if (const Json* value = find(key)) {
            if (!value->is_boolean()) throw Wrong{at(key), "true or false"};
            out = value->get<bool>();
        }
    }

    void take(const char* key, int& out) const {
        if (const Json* value = find(key)) {
            const auto wrong = Wrong{at(key), "a whole number"};
            if (!value->is_number_integer()) throw wrong;
            const auto number = value->get<std::int64_t>();
            if (number < -1 || number > std::numeric_limits<int>::max()) throw wrong;
            out = static_cast<int>(number);
        }
    }

    void take(const char* key, double& out) const {
        if (const Json* value = find(key)) {
            if (!value->is_number() || value->get<double>() < 0)
                throw Wrong{at(key), "a number that is not negative"};
            out = value->get<double>();
        }
    }

    void take(const char* key, CpuSet& out) const {
        std::string text;
        take(key, text);
        const auto cpus = CpuSet::parse(text);
        if (!cpus) throw Wrong{at(key), "a CPU list such as \"0-11,24\""};
        out = *cpus;
    }

    void take(const char* key, std::optional<std::string>& out) const {
        if (find(key) == nullptr) return;
        std::string text;
        take(key, text);
        out = text;
    }

    void take(const char* key, std::optional<int>& out) const {
        if (find(key) == nullptr) return;
        int number = 0;
        take(key, number);
        out = number;
    }

    void take(const char* key, std::optional<PciAddress>& out) const {
        if (find(key) == nullptr) return;
        std::string text;
        take(key, text);
        out = PciAddress::parse(text);
        if (!out) throw Wrong{at(key), "a PCI address such as \"0000:03:00.0\""};
    }

    void take(const char* key, PcieLink& out) const {
        const Json* value = find(key);
        if (value == nullptr) return;
        const Object link(*value, at(key));
        link.take("speed_gts", out.speed_gts);
        link.take("width", out.width);
        link.take("max_speed_gts", out.max_speed_gts);
        link.take("max_width", out.max_width);
    }

    template <class Enum>
    void takeEnum(const char* key, Enum& out) const {
        if (find(key) == nullptr) return;
        std::string text;
        take(key, text);
        const auto value = enumFromText<Enum>(text);
        if (!value) throw Wrong{at(key), "one of the known words, not \"" + text + '"'};
        out = *value;
    }

    /// Calls `each(json, where)` for every element of an array.
    template <class Each>
    void forEach(const char* key, Each each) const {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_array()) throw Wrong{at(key), "an array"};
        std::size_t i = 0;
        for (const Json& element : *value) each(element, at(key) + '[' + std::to_string(i++) + ']');
    }

    void take(const char* key, std::vector<std::string>& out) const {
        forEach(key, [&](const Json& element, const std::string& where) {
            if (!element.is_string()) throw Wrong{where, "text"};
            out.push_back(element.get<std::string>());
        });
    }

    void take(const char* key, std::vector<PciAddress>& out) const {
        std::vector<std::string> texts;
        take(key, texts);
        for (const std::string& text : texts) {
            const auto pci = PciAddress::parse(text);
            if (!pci) throw Wrong{at(key), "PCI addresses, not \"" + text + '"'};
            out.push_back(*pci);
        }
    }

  private:
    const Json& json_;
    std::string where_;
};

Gpu readGpu(const Object& json) {
    Gpu gpu;
    json.take("index", gpu.index);
    json.take("pci", gpu.pci);
    json.take("uuid", gpu.uuid);
    json.take("minor", gpu.minor);
    json.take("vendor", gpu.vendor);
    json.take("model", gpu.model);
    json.take("numa", gpu.numa);
    json.take("package", gpu.package);
    json.take("cpus", gpu.cpus);
    json.take("pci_path", gpu.pci_path);
    json.take("link", gpu.link);
    json.take("mig", gpu.mig);
    return gpu;
}

Hca readHca(const Object& json) {
    Hca hca;
    json.take("name", hca.name);
    if (hca.name.empty()) throw Wrong{json.at("name"), "the device's name"};
    json.take("port", hca.port);
    json.take("pci", hca.pci);
    json.takeEnum("link_layer", hca.link_layer);
    json.takeEnum("state", hca.state);
    json.take("rate_gbps", hca.rate_gbps);
    json.take("pcie_gbps", hca.pcie_gbps);
    json.take("lid", hca.lid);
    json.take("sm_lid", hca.sm_lid);
    json.take("gids_known", hca.gids_known);
    json.forEach("gids", [&](const Json& element, const std::string& where) {
        const Object object(element, where);
        Gid gid;
        object.take("index", gid.index);
        object.take("value", gid.value);
        object.takeEnum("type", gid.type);
        object.take("netdev", gid.netdev);
        hca.gids.push_back(std::move(gid));
    });
    json.take("netdev", hca.netdev);
    json.take("node_guid", hca.node_guid);
    json.take("sys_image_guid", hca.sys_image_guid);
    json.take("numa", hca.numa);
    json.take("package", hca.package);
    json.take("pci_path", hca.pci_path);
    json.take("link", hca.link);
    json.take("physical_function", hca.physical_function);
    json.take("has_vfs", hca.has_vfs);
    json.take("bond_master", hca.bond_master);
    json.take("is_bond", hca.is_bond);
    json.take("software", hca.software);
    json.take("open_errno", hca.open_errno);
    return hca;
}

void readDistances(const Object& json, Node& node) {
    json.forEach("distance", [&](const Json& row, const std::string& where) {
        if (!row.is_array() || row.size() != node.hcas.size())
            throw Wrong{where,
                        "one word for each of the " + std::to_string(node.hcas.size()) + " HCAs"};
        std::vector<Distance> distances;
        for (const Json& cell : row) {
            const auto distance =
                cell.is_string() ? parseDistance(cell.get<std::string>()) : std::nullopt;
            if (!distance) throw Wrong{where, "PIX, PXB, PHB, NODE, SYS or ?"};
            distances.push_back(*distance);
        }
        node.distance.push_back(std::move(distances));
    });
    if (node.distance.size() != node.gpus.size())
        throw Wrong{json.at("distance"),
                    "one row for each of the " + std::to_string(node.gpus.size()) + " GPUs"};
}

Node readNode(const Json& document) {
    const Object json(document, "node");
    int version = 0;
    json.take("rdma_tune_node", version);
    if (version != kNodeJsonVersion)
        throw Wrong{json.at("rdma_tune_node"), std::to_string(kNodeJsonVersion)};
    Node node;
    json.take("hostname", node.hostname);
    json.takeEnum("source", node.source);
    json.take("flat", node.flat);
    json.take("cpus", node.cpus);
    json.forEach("numa", [&](const Json& element, const std::string& where) {
        const Object object(element, where);
        NumaNode numa;
        object.take("os_index", numa.os_index);
        object.take("package", numa.package);
        object.take("cpus", numa.cpus);
        node.numa.push_back(std::move(numa));
    });
    json.forEach("gpus", [&](const Json& element, const std::string& where) {
        node.gpus.push_back(readGpu(Object(element, where)));
        if (node.gpus.back().index != static_cast<int>(node.gpus.size()) - 1)
            throw Wrong{where + ".index", "the GPU's place in the list"};
    });
    json.forEach("hcas", [&](const Json& element, const std::string& where) {
        node.hcas.push_back(readHca(Object(element, where)));
    });
    json.forEach("bridges", [&](const Json& element, const std::string& where) {
        const Object object(element, where);
        std::optional<PciAddress> pci;
        object.take("pci", pci);
        if (!pci) throw Wrong{where + ".pci", "a PCI address"};
        PciBridge bridge;
        bridge.pci = *pci;
        object.take("vendor_device", bridge.vendor_device);
        object.take("link", bridge.link);
        node.bridges.push_back(std::move(bridge));
    });
    readDistances(json, node);
    json.take("notes", node.notes);
    return node;
}

}  // namespace

Result<Node> nodeFromJson(std::string_view json, const std::string& name) {
    try {
        return readNode(Json::parse(json));
    } catch (const Json::exception& error) {
        return Error{name + ": not the JSON of a node: " + error.what()};
    } catch (const Wrong& wrong) {
        return Error{name + ": " + wrong.where + ": expected " + wrong.expected};
    }
}

}  // namespace rdmatune
