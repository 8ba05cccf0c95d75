// One port of an opened HCA, with what must be known of it to connect and to judge its figures.
#pragma once

#include <string>
#include <string_view>

#include "tuner/base/result.hpp"
#include "tuner/fabric/verbs_address.hpp"
#include "tuner/fabric/verbs_handles.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune::fabric {

/// An opened port. Members are destroyed in the reverse of their order: the domain first.
struct VerbsPort {
    std::string label;  ///< "mlx5_0 port 1", as errors name it
    std::string name;   ///< "mlx5_0", or "mlx5_0:2" for any port but the first
    int port = 1;
    DeviceContext context;
    ProtectionDomain domain;
    Hca hca;  ///< link layer, state and GIDs, as read through verbs
    int gid_index = 0;
    std::array<std::uint8_t, 16> gid{};
    bool roce_v1 = false;
    int mtu = 0;                 ///< active, as enum ibv_mtu
    bool global_always = false;  ///< the port asks for a global routing header in every packet
    int rd_atomic = 1;    ///< RDMA reads the device answers and issues at once, per queue pair
    double rate_gbs = 0;  ///< link rate, GB/s; 0: not known
};

/// Opens `hca` and checks that `port` can carry traffic. `gid_index` -1 lets bestGid() choose.
[[nodiscard]] Result<VerbsPort> openVerbsPort(const std::string& hca, int port, int gid_index);

/// Link rate in GB/s from the verbs encodings of speed and width; 0 for codes not known.
/// Source: InfiniBand architecture specification, PortInfo LinkSpeedActive and LinkWidthActive; the
/// rates are those /sys and NCCL name (SDR 2.5, DDR 5, QDR and FDR10 10, FDR 14, EDR 25, HDR 50,
/// NDR 100, XDR 200 Gbit/s per lane).
[[nodiscard]] double linkRateGbs(int speed_code, int width_code);

}  // namespace rdmatune::fabric
