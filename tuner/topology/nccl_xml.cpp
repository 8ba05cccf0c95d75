// NCCL's topology XML: what providers hand out for their virtual machines and what NCCL itself
// dumps. <cpu> is a NUMA node, a <pci> of bridge class a whole switch, any other a device.
#include <tinyxml2.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "tuner/base/text.hpp"
#include "tuner/topology/complete.hpp"
#include "tuner/topology/formats.hpp"
#include "tuner/topology/pci_kind.hpp"
#include "tuner/topology/sys_pci.hpp"
#include "tuner/topology/xml_text.hpp"

namespace rdmatune {
namespace {

using tinyxml2::XMLElement;

std::optional<std::uint64_t> hexAttribute(const XMLElement& element, const char* name) {
    return parseHex(attribute(element, name));
}

PcieLink linkOf(const XMLElement& pci) {
    PcieLink link;
    link.speed_gts = parseLinkSpeed(attribute(pci, "link_speed"));
    const auto width = parseInt<int>(attribute(pci, "link_width"));
    link.width = width && *width >= 1 && *width <= 32 ? *width : 0;
    return link;
}

/// NCCL writes the GUID's big-endian bytes as one little-endian number.
std::string guidText(std::uint64_t number) {
    if (number == 0) return {};
    std::string out;
    for (int byte = 0; byte < 8; ++byte) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        const unsigned value = static_cast<unsigned>(number >> (8 * byte)) & 0xffU;
        if (byte > 0 && byte % 2 == 0) out += ':';
        out += kDigits[value >> 4];
        out += kDigits[value & 0xfU];
    }
    return out;
}

/// libfabric's devices carry their kind of endpoint behind the verbs device's name
/// ("rdmap79s0-rdm", what aws-ofi-nccl reports).
std::string_view withoutEndpoint(std::string_view name) {
    for (const std::string_view kind : {"-rdm", "-dgram", "-dgrm", "-msg"})
        if (name.ends_with(kind)) return name.substr(0, name.size() - kind.size());
    return name;
}

/// Walks the tree; the first thing that is not as NCCL writes it ends the walk with an error.
class Reader {
  public:
    explicit Reader(std::string name) : name_(std::move(name)) {}

    Result<Node> read(const XMLElement& system) {
        node_.source = TopologySource::NcclXml;
        nets_told_ = contains(system, "net");
        for (auto* cpu = system.FirstChildElement(); cpu != nullptr;
             cpu = cpu->NextSiblingElement()) {
            if (std::strcmp(cpu->Name(), "cpu") != 0) continue;
            if (ofAnotherHost(*cpu)) continue;
            if (Status status = readCpu(*cpu); !status) return status.error();
        }
        if (other_hosts_)
            node_.notes.emplace_back(
                "The file has several hosts (host_hash); the first one is used.");
        if (cpus_ == 0)
            return problem(system, "has no <cpu>; expected <cpu numaid=...> with <pci> inside");
        linkVirtualFunctions(node_, virtual_functions_);
        nameHcas();
        completeNode(node_, PathForm::Switches, false);
        return std::move(node_);
    }

  private:
    [[nodiscard]] Error problem(const XMLElement& element, const std::string& what) const {
        return xmlProblem(name_, element, what);
    }

    static bool contains(const XMLElement& element, const char* name) {
        for (auto* child = element.FirstChildElement(); child != nullptr;
             child = child->NextSiblingElement())
            if (std::strcmp(child->Name(), name) == 0 || contains(*child, name)) return true;
        return false;
    }

    Status readCpu(const XMLElement& cpu) {
        ++cpus_;
        const auto numa_id = parseInt<int>(trim(attribute(cpu, "numaid")));
        if (!numa_id || *numa_id < -1)
            return problem(cpu, "needs a whole number as numaid, not \"" +
                                    printable(attribute(cpu, "numaid")) + '"');
        const auto affinity = CpuSet::parseMask(attribute(cpu, "affinity"));
        if (!affinity && !attribute(cpu, "affinity").empty())
            return problem(cpu, "has an affinity that is no hexadecimal mask: \"" +
                                    printable(attribute(cpu, "affinity")) + '"');
        // -1: the kernel knows no NUMA node. What hangs on one <cpu> still meets there.
        numa_ = std::max(0, *numa_id);
        cpu_set_ = affinity.value_or(CpuSet{});
        if (!numa_ids_.insert(numa_).second) return problem(cpu, "has the numaid of another <cpu>");
        node_.numa.push_back({numa_, -1, cpu_set_});
        std::vector<PciAddress> path;
        if (Status status = readChildren(cpu, path); !status) return status;
        Hca without_pci;  // what NCCL found no PCI function of hangs on the CPU itself
        without_pci.numa = numa_;
        return addNets(cpu, without_pci);
    }

    /// NCCL's dump on machines whose NVLink spans several nodes has all of them.
    bool ofAnotherHost(const XMLElement& cpu) {
        const std::string host(attribute(cpu, "host_hash"));
        if (cpus_ == 0) host_ = host;
        other_hosts_ = other_hosts_ || host != host_;
        return host != host_;
    }

    Status readChildren(const XMLElement& parent, std::vector<PciAddress>& path) {
        for (auto* child = parent.FirstChildElement("pci"); child != nullptr;
             child = child->NextSiblingElement("pci"))
            if (Status status = readPci(*child, path); !status) return status;
        return Done{};
    }

    Status readPci(const XMLElement& pci, std::vector<PciAddress>& path) {
        const auto address = PciAddress::parse(attribute(pci, "busid"));
        if (!address)
            return problem(pci, "needs a busid such as \"0000:10:1c.0\", not \"" +
                                    printable(attribute(pci, "busid")) + '"');
        if (!seen_.insert(*address).second)
            return problem(pci, "repeats the busid " + address->str());
        const auto full_class = hexAttribute(pci, "class");
        if (!full_class)
            return problem(pci, "needs a hexadecimal class such as \"0x030200\", not \"" +
                                    printable(attribute(pci, "class")) + '"');
        // Six digits, the lowest two the programming interface; some write four.
        const bool is_short = *full_class <= 0xffff;
        const auto pci_class = static_cast<std::uint32_t>(*full_class >> (is_short ? 0 : 8));
        if (isPciBridge(pci_class) || pci.FirstChildElement("pci") != nullptr) {
            node_.bridges.push_back({*address, vendorText(pci), linkOf(pci)});
            path.push_back(*address);
            Status status = readChildren(pci, path);
            path.pop_back();
            return status;
        }
        if (isGpuElement(pci, pci_class)) addGpu(pci, *address, path);
        if (isNetwork(pci_class)) return addNic(pci, *address, pci_class, path);
        return Done{};
    }

    static std::string vendorText(const XMLElement& pci) {
        const auto vendor = hexAttribute(pci, "vendor");
        const auto device = hexAttribute(pci, "device");
        // 0xffff marks a switch that a provider made up to express nearness.
        if (!vendor || !device || *vendor == 0xffff) return {};
        return vendorDevice(static_cast<std::uint32_t>(*vendor),
                            static_cast<std::uint32_t>(*device));
    }

    /// Providers leave the vendor out; NCCL itself goes by the class, or by a <gpu> inside.
    static bool isGpuElement(const XMLElement& pci, std::uint32_t pci_class) {
        if (pci.FirstChildElement("gpu") != nullptr) return true;
        const auto vendor = hexAttribute(pci, "vendor");
        if (vendor) return isComputeGpu(static_cast<std::uint32_t>(*vendor), pci_class);
        return pci_class == 0x0300 || pci_class == 0x0302 || pci_class == 0x0380 ||
               pci_class == 0x1200;
    }

    void addGpu(const XMLElement& pci, const PciAddress& address,
                const std::vector<PciAddress>& path) {
        Gpu gpu;
        gpu.pci = address;
        const auto vendor = hexAttribute(pci, "vendor");
        const auto* inside = pci.FirstChildElement("gpu");
        if (vendor)
            gpu.vendor = gpuVendor(static_cast<std::uint32_t>(*vendor));
        else if (inside != nullptr && inside->Attribute("gcn") != nullptr)
            gpu.vendor = "amd";  // RCCL's dialect
        else if (inside != nullptr && inside->Attribute("sm") != nullptr)
            gpu.vendor = "nvidia";
        gpu.numa = numa_;
        gpu.cpus = cpu_set_;
        gpu.pci_path = path;
        gpu.link = linkOf(pci);
        node_.gpus.push_back(std::move(gpu));
    }

    Status addNic(const XMLElement& pci, const PciAddress& address, std::uint32_t pci_class,
                  const std::vector<PciAddress>& path) {
        Hca hca;
        hca.pci = address;
        hca.numa = numa_;
        hca.pci_path = path;
        hca.link = linkOf(pci);
        const auto vendor = hexAttribute(pci, "vendor").value_or(0);
        const auto device = hexAttribute(pci, "device").value_or(0);
        if (isVirtualFunction(static_cast<std::uint32_t>(vendor),
                              static_cast<std::uint32_t>(device)))
            virtual_functions_.insert(address);
        if (pci_class == 0x0207) hca.link_layer = LinkLayer::InfiniBand;
        // Without a single <net> every NIC of the file is meant; with some, those with one.
        if (!nets_told_) node_.hcas.push_back(hca);
        return addNets(pci, hca);
    }

    /// The <net>s of all <nic>s inside `parent`.
    Status addNets(const XMLElement& parent, const Hca& hca) {
        for (auto* nic = parent.FirstChildElement("nic"); nic != nullptr;
             nic = nic->NextSiblingElement("nic"))
            for (auto* net = nic->FirstChildElement("net"); net != nullptr;
                 net = net->NextSiblingElement("net"))
                if (Status status = addNet(*net, hca); !status) return status;
        return Done{};
    }

    Status addNet(const XMLElement& net, Hca hca) {
        const std::string names = printable(attribute(net, "name"));
        if (names.empty()) return problem(net, "needs a name");
        const auto guid = hexAttribute(net, "guid").value_or(0);
        const int port = parseInt<int>(attribute(net, "port")).value_or(1);
        // NCCL's TCP transport lists Ethernet interfaces with port 0 and no GUID.
        if (port < 1 && guid == 0) {
            node_.notes.push_back(names + " is a network interface without RDMA and is left out.");
            return Done{};
        }
        hca.port = port < 1 ? 1 : port;
        hca.state = PortState::Active;  // NCCL lists no others
        hca.sys_image_guid = guidText(guid);
        const double speed = parseReal(attribute(net, "speed")).value_or(0);
        hca.rate_gbps = speed > 0 && speed < 1e9 ? speed / 1000 : 0;
        if (hca.link_layer == LinkLayer::Unknown && names.starts_with("mlx5_"))
            hca.link_layer = LinkLayer::Ethernet;
        // A merged device of NCCL's stands for several; each is one HCA to us.
        const auto parts = split(names, '+');
        for (const std::string_view full : parts) {
            const std::string_view part = withoutEndpoint(full);
            Hca one = hca;
            one.name = part;
            one.rate_gbps /= static_cast<double>(parts.size());
            one.is_bond = part.find("_bond_") != std::string_view::npos;
            if (part.empty() || !ports_.insert({one.name, one.port}).second) continue;
            node_.hcas.push_back(std::move(one));
        }
        return Done{};
    }

    /// NICs without a name are numbered in PCI order, as `nvidia-smi topo -m` numbers them.
    void nameHcas() {
        std::ranges::stable_sort(node_.hcas, {}, &Hca::pci);
        int number = 0;
        for (Hca& hca : node_.hcas)
            if (hca.name.empty()) hca.name = "NIC" + std::to_string(number++);
        if (number > 0)
            node_.notes.emplace_back(
                "The file gives its NICs no names: they are numbered NIC0, NIC1, ... in PCI "
                "order.");
    }

    std::string name_;
    Node node_;
    bool nets_told_ = false;
    int cpus_ = 0;
    int numa_ = -1;
    CpuSet cpu_set_;
    std::set<int> numa_ids_;
    std::set<PciAddress> virtual_functions_;
    std::string host_;  ///< host_hash of the first <cpu>
    bool other_hosts_ = false;
    std::set<PciAddress> seen_;
    std::set<std::pair<std::string, int>> ports_;
};

}  // namespace

Result<Node> readNcclXml(std::string_view text, const std::string& name) {
    tinyxml2::XMLDocument document;
    const auto system = parseXml(document, text, name, "system");
    if (!system) return system.error();
    return Reader(name).read(**system);
}

}  // namespace rdmatune
