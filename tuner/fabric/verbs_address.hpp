// What one end of a queue pair tells the other, out of band.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rdmatune::fabric {

/// Text form, one word of at most 128 characters, numbers in hexadecimal:
/// "rc1:LAYER:MTU:LID:QPN:PSN:GID:FLAGS:RDATOMIC:RKEY:ADDRESS:RKEY:ADDRESS", first the control
/// page's key and address, then the stream buffer's. Every program of this version lays both out
/// alike.
struct VerbsAddress {
    bool ethernet = false;  ///< RoCE; else InfiniBand
    bool roce_v1 = false;   ///< RoCE by GRH only, which both ends must speak
    bool messages = false;  ///< the control page is followed by message slots
    int mtu = 0;            ///< enum ibv_mtu: 1 is 256 bytes, 5 is 4096
    std::uint16_t lid = 0;
    std::uint32_t qpn = 0;  ///< 24 bits
    std::uint32_t psn = 0;  ///< 24 bits: the first packet's sequence number
    std::array<std::uint8_t, 16> gid{};
    int rd_atomic = 0;  ///< RDMA reads that this end answers at once
    std::uint32_t control_key = 0;
    std::uint64_t control = 0;
    std::uint32_t stream_key = 0;
    std::uint64_t stream = 0;
    bool operator==(const VerbsAddress&) const = default;

    [[nodiscard]] std::string str() const;
    [[nodiscard]] static std::optional<VerbsAddress> parse(std::string_view text);

    /// For people: "LID 3 QP 0x11" or "10.9.0.2 QP 0x11".
    [[nodiscard]] std::string describe() const;
};

/// Whether packets to `peer` need a global routing header: always over RoCE, over InfiniBand when
/// the subnet prefixes differ or the peer has no LID.
[[nodiscard]] bool needsGlobalRoute(const VerbsAddress& self, const VerbsAddress& peer);

/// Why these two cannot be connected, or empty.
[[nodiscard]] std::string mismatch(const VerbsAddress& self, const VerbsAddress& peer);

}  // namespace rdmatune::fabric
