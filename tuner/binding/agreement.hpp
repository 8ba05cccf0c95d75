// What the agents of a job agreed on before they measured. Crosses from srun to every node as one
// line, so that each node plans with what all nodes have.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/topology/node.hpp"

namespace rdmatune {

/// Text form, one line without blanks inside a value:
/// "rt-agreed/1 rails=4 layer=IB subnets=fe800000:00000000,... order=position".
struct Agreement {
    int rails = 0;  ///< HCAs that every node has usable; 0: no common RDMA fabric
    LinkLayer link_layer = LinkLayer::Unknown;
    std::vector<std::string>
        subnets;  ///< per rail, see subnetOf(); empty: rails are not told apart by subnet
    bool rails_by_subnet = false;  ///< order the rails by `subnets` instead of by position
    bool rails_cross = false;      ///< a rail reaches other rails (what NCCL_CROSS_NIC may use)
    bool operator==(const Agreement&) const = default;

    [[nodiscard]] std::string str() const;
    [[nodiscard]] static std::optional<Agreement> parse(std::string_view line);
};

/// The subnet a port is on: InfiniBand's 64-bit prefix of GID 0; for RoCE the network of its best
/// routable GID's interface ("10.1.0.0/16" is not in /sys, so: the GID's first 24 bits of an IPv4
/// address or 64 bits of an IPv6 one). Empty: not known.
[[nodiscard]] std::string subnetOf(const Hca& hca);

}  // namespace rdmatune
