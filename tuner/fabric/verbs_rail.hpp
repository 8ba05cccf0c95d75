// One rail of an agent: the opened port and the memory that large messages go from and to.
#pragma once

#include <cstddef>
#include <optional>

#include "tuner/fabric/gpu_memory.hpp"
#include "tuner/fabric/verbs_device.hpp"
#include "tuner/fabric/verbs_handles.hpp"

namespace rdmatune::fabric {

/// Half of a stream buffer; its first half is what peers write to, the second what is sent from.
/// 2 MiB, so that a message of NCCL's usual 512 KiB network chunk fits several times.
inline constexpr std::size_t kStreamHalf = std::size_t{2} << 20;

/// Links of a rail share its stream buffer: what arrives there is never read.
struct VerbsRail {
    VerbsPort port;
    HostBuffer host;  ///< empty when GPU memory is used
    std::optional<GpuBuffer> gpu;
    MemoryRegion stream;  ///< registration of either; freed before the memory
    int traffic_class = 0;
    int service_level = 0;
    bool messages = false;

    [[nodiscard]] bool onGpu() const { return gpu.has_value(); }
    [[nodiscard]] std::uint64_t streamAddress() const {
        return gpu ? gpu->address() : reinterpret_cast<std::uint64_t>(host.data());
    }
};

}  // namespace rdmatune::fabric
