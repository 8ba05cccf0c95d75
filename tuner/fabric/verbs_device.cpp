#include "tuner/fabric/verbs_device.hpp"

#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "tuner/binding/gid.hpp"
#include "tuner/fabric/verbs_error.hpp"

namespace rdmatune::fabric {
namespace {

struct DeviceList {
    int count = 0;
    std::unique_ptr<ibv_device*, Freed<&ibv_free_device_list>> devices;
    DeviceList() : devices(ibv_get_device_list(&count)) {}
    [[nodiscard]] std::span<ibv_device*> all() const {
        return {devices.get(), devices ? static_cast<std::size_t>(count) : 0};
    }
};

Result<DeviceContext> openDevice(const std::string& name) {
    errno = 0;
    const DeviceList list;
    if (!list.devices)
        return Error{fmt::format(
            "{}: the RDMA devices cannot be listed: {}; is rdma-core installed and ib_uverbs "
            "loaded?",
            name, std::strerror(errno))};
    std::string seen;
    for (ibv_device* device : list.all()) {
        const char* found = ibv_get_device_name(device);
        if (name == found) {
            errno = 0;
            DeviceContext context(ibv_open_device(device));
            if (!context) return verbsError(name, "opening the device", errno);
            return context;
        }
        seen += seen.empty() ? "" : ", ";
        seen += found;
    }
    return Error{fmt::format("{}: no such RDMA device here; verbs know {}", name,
                             seen.empty() ? "none (is the provider library installed?)" : seen)};
}

std::string gidString(const ibv_gid& gid) {
    std::string out;
    for (std::size_t i = 0; i < 16; i += 2)
        out += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid.raw[i], gid.raw[i + 1]);
    return out;
}

/// The port's entries of the GID table, zero ones left out as /sys shows them empty.
std::vector<Gid> readGids(ibv_context* context, int port) {
    std::vector<ibv_gid_entry> entries(512);
    const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
    std::vector<Gid> gids;
    for (const ibv_gid_entry& entry :
         std::span(entries.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)))) {
        if (static_cast<int>(entry.port_num) != port) continue;
        Gid gid;
        gid.index = static_cast<int>(entry.gid_index);
        gid.value = gidString(entry.gid);
        gid.type = entry.gid_type == IBV_GID_TYPE_ROCE_V2   ? GidType::RoceV2
                   : entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? GidType::RoceV1
                                                            : GidType::InfiniBand;
        std::array<char, IF_NAMESIZE> netdev{};
        if (entry.ndev_ifindex != 0 && if_indextoname(entry.ndev_ifindex, netdev.data()) != nullptr)
            gid.netdev = netdev.data();
        gids.push_back(std::move(gid));
    }
    return gids;
}

PortState stateOf(ibv_port_state state) {
    switch (state) {
        case IBV_PORT_ACTIVE:
        case IBV_PORT_ACTIVE_DEFER:
            return PortState::Active;
        case IBV_PORT_ARMED:
            return PortState::Armed;
        case IBV_PORT_INIT:
            return PortState::Init;
        case IBV_PORT_DOWN:
            return PortState::Down;
        default:
            return PortState::Unknown;
    }
}

Error notActive(const VerbsPort& out) {
    const bool ethernet = out.hca.link_layer == LinkLayer::Ethernet;
    return Error{
        fmt::format("{}: the port is {}, not ACTIVE; {}", out.label, toString(out.hca.state),
                    ethernet ? "set its network interface up and check the cable"
                    : out.hca.state == PortState::Init ? "a subnet manager is needed to activate it"
                                                       : "check the cable and the switch")};
}

Status chooseGid(VerbsPort& out, int wanted) {
    const bool ethernet = out.hca.link_layer == LinkLayer::Ethernet;
    const Gid* chosen = nullptr;
    if (wanted >= 0) {
        for (const Gid& gid : out.hca.gids)
            if (gid.index == wanted) chosen = &gid;
        if (chosen == nullptr)
            return Error{
                fmt::format("{}: GID index {} (NCCL_IB_GID_INDEX) is not in its table; "
                            "unset it to have one chosen",
                            out.label, wanted)};
    } else if (const auto best = bestGid(out.hca)) {
        chosen = &out.hca.gids[*best];
    }
    if (chosen == nullptr) {
        if (!ethernet && out.hca.lid != 0) return Done{};  // a LID is enough within a subnet
        return Error{fmt::format("{}: the port has no GID; {}", out.label,
                                 ethernet ? "give its network interface an IP address and set it up"
                                          : "a subnet manager must configure it")};
    }
    const auto bytes = parseGid(chosen->value);
    if (!bytes) return Error{fmt::format("{}: GID {} is malformed", out.label, chosen->value)};
    out.gid = *bytes;
    out.gid_index = chosen->index;
    out.roce_v1 = chosen->type == GidType::RoceV1;
    return Done{};
}

}  // namespace

double linkRateGbs(int speed_code, int width_code) {
    double gbits = 0;  // per lane
    switch (speed_code) {
        case 1:
            gbits = 2.5;
            break;
        case 2:
            gbits = 5;
            break;
        case 4:
        case 8:
            gbits = 10;
            break;
        case 16:
            gbits = 14;
            break;
        case 32:
            gbits = 25;
            break;
        case 64:
            gbits = 50;
            break;
        case 128:
            gbits = 100;
            break;
        case 256:
            gbits = 200;
            break;
        default:
            return 0;
    }
    switch (width_code) {
        case 1:
            return gbits / 8;
        case 2:
            return gbits * 4 / 8;
        case 4:
            return gbits * 8 / 8;
        case 8:
            return gbits * 12 / 8;
        case 16:
            return gbits * 2 / 8;
        default:
            return 0;
    }
}

Result<VerbsPort> openVerbsPort(const std::string& hca, int port, int gid_index) {
    VerbsPort out;
    out.label = fmt::format("{} port {}", hca, port);
    out.port = port;
    out.hca.name = hca;
    out.hca.port = port;
    out.name = out.hca.label();
    Result<DeviceContext> context = openDevice(hca);
    if (!context) return context.error();
    out.context = std::move(context.value());

    ibv_device_attr device{};
    if (const int rc = ibv_query_device(out.context.get(), &device); rc != 0)
        return verbsError(out.label, "querying the device", rc);
    if (port < 1 || port > device.phys_port_cnt)
        return Error{fmt::format("{}: the device has {} port(s)", out.label, device.phys_port_cnt)};
    out.rd_atomic = std::clamp(std::min(device.max_qp_rd_atom, device.max_qp_init_rd_atom), 1, 16);

    ibv_port_attr attributes{};
    if (const int rc =
            ibv_query_port(out.context.get(), static_cast<std::uint8_t>(port), &attributes);
        rc != 0)
        return verbsError(out.label, "querying the port", rc);
    out.hca.link_layer = attributes.link_layer == IBV_LINK_LAYER_ETHERNET ? LinkLayer::Ethernet
                                                                          : LinkLayer::InfiniBand;
    out.hca.state = stateOf(attributes.state);
    out.hca.lid = attributes.lid;
    out.hca.sm_lid = attributes.sm_lid;
    if (out.hca.state != PortState::Active) return notActive(out);
    out.mtu = attributes.active_mtu;
    out.global_always = (attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
    out.rate_gbs = linkRateGbs(attributes.active_speed, attributes.active_width);
    out.hca.rate_gbps = out.rate_gbs * 8;

    out.hca.gids = readGids(out.context.get(), port);
    out.hca.gids_known = true;
    if (Status status = chooseGid(out, gid_index); !status) return status.error();

    errno = 0;
    out.domain.reset(ibv_alloc_pd(out.context.get()));
    if (!out.domain) return verbsError(out.label, "allocating a protection domain", errno);
    return out;
}

}  // namespace rdmatune::fabric
