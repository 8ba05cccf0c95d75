#include "tuner/binding/eligible.hpp"

#include <cerrno>
#include <cstring>

#include "tuner/binding/gid.hpp"
#include "tuner/binding/rules.hpp"

namespace rdmatune {
namespace {

/// The kernel's device cgroup answers EPERM, but a library in between may turn that into ENOENT.
std::string cannotOpen(const Hca& hca) {
    std::string out = "Its device file under /dev/infiniband cannot be opened (";
    out += std::strerror(hca.open_errno);
    out += ")";
    if (hca.open_errno == EPERM || hca.open_errno == EACCES || hca.open_errno == ENOENT)
        out += ": a device cgroup, a container without the device, or missing permission";
    return out + ".";
}

std::optional<Verdict> judgeAlone(const Hca& hca) {
    if (hca.state != PortState::Unknown && hca.state != PortState::Active) {
        std::string reason = "Its port is " + std::string(toString(hca.state)) + ", not ACTIVE";
        if (hca.state != PortState::Down && hca.link_layer == LinkLayer::InfiniBand)
            reason += ": it waits for the subnet manager";
        return Verdict{"port-down", reason + "."};
    }
    if (hca.open_errno != 0) return Verdict{"cannot-open", cannotOpen(hca)};
    if (hca.gids_known && !bestGid(hca))
        return Verdict{"no-gid",
                       "It has no GID here, so nothing can be sent to it: its interface has no "
                       "address, or belongs to another network namespace."};
    return std::nullopt;
}

/// An HCA whose interface is enslaved, while the bond's own RDMA device is usable.
std::optional<Verdict> judgeBond(const Node& node, const Eligibility& state, const Hca& hca) {
    if (hca.is_bond || hca.bond_master.empty()) return std::nullopt;
    for (std::size_t i = 0; i < node.hcas.size(); ++i) {
        const Hca& bond = node.hcas[i];
        if (state.verdicts[i] || !bond.is_bond) continue;
        if (bond.bond_master == hca.bond_master || bond.netdev == hca.bond_master)
            return Verdict{"bonded", "Its port is part of " + hca.bond_master + ", which " +
                                         bond.label() + " uses already."};
    }
    return std::nullopt;
}

std::optional<Verdict> judgeVf(const Node& node, const Eligibility& state, const Hca& hca) {
    if (!hca.physical_function) return std::nullopt;
    for (std::size_t i = 0; i < node.hcas.size(); ++i)
        if (!state.verdicts[i] && node.hcas[i].pci == hca.physical_function)
            return Verdict{"vf-beside-pf",
                           "It is a virtual function of " + node.hcas[i].label() +
                               ", which is used itself; NCCL must not see both of them."};
    return std::nullopt;
}

}  // namespace

void applyFacts(const Node& node, Eligibility& out) {
    for (std::size_t i = 0; i < node.hcas.size(); ++i)
        if (!out.verdicts[i]) out.verdicts[i] = judgeAlone(node.hcas[i]);
    // These two compare with the HCAs that are left, so they come after.
    for (const auto judge : {judgeBond, judgeVf})
        for (std::size_t i = 0; i < node.hcas.size(); ++i)
            if (!out.verdicts[i]) out.verdicts[i] = judge(node, out, node.hcas[i]);
}

std::vector<int> Eligibility::usable() const {
    std::vector<int> out;
    for (std::size_t i = 0; i < verdicts.size(); ++i)
        if (!verdicts[i]) out.push_back(static_cast<int>(i));
    return out;
}

Distance distanceBetween(const Node& node, int gpu, int hca) {
    const auto g = static_cast<std::size_t>(gpu);
    const auto h = static_cast<std::size_t>(hca);
    if (g >= node.distance.size() || h >= node.distance[g].size()) return Distance::Unknown;
    return node.distance[g][h];
}

Result<Eligibility> judgeHcas(const Node& node, const PlanRequest& request,
                              const std::vector<int>& gpus) {
    Eligibility out;
    out.verdicts.resize(node.hcas.size());
    if (Status status = applySiteNames(node, request, out); !status) return status.error();
    applyFacts(node, out);
    applyFabric(node, request, gpus, out);
    return out;
}

}  // namespace rdmatune
