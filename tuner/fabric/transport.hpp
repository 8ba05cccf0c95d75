// How two agents reach each other while measuring: verbs, or TCP where there is no RDMA.
// measure.cpp knows only this interface.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/result.hpp"
#include "tuner/profile/profile.hpp"

namespace rdmatune::fabric {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// One-way latency of small messages in microseconds, over `samples` round trips.
struct Latency {
    double min_us = 0;
    double median_us = 0;
    double p99_us = 0;
    int samples = 0;
};

/// A stream of large messages as its sender saw it complete.
struct Throughput {
    double bytes = 0;
    double seconds = 0;
    [[nodiscard]] double gbs() const { return seconds > 0 ? bytes / seconds * 1e-9 : 0; }
};

/// One end of a point-to-point connection between two agents on one rail. Not thread-safe; used
/// by one thread at a time. Every blocking call ends by its deadline, whatever the peer does.
class Link {
  public:
    virtual ~Link() = default;
    /// What the peer needs to reach this end; text without blanks, at most 128 characters.
    [[nodiscard]] virtual std::string address() const = 0;
    /// Connects to the peer's address(). Both ends call it, `active` on exactly one of them.
    /// `cookie` is the job's secret: a peer without it is refused. A transport whose hardware
    /// connects without the peer's program (verbs) may return before the peer has answered; then
    /// the cookie is checked, and a missing peer found, by the first of the calls below.
    [[nodiscard]] virtual Status connect(std::string_view peer, bool active,
                                         std::string_view cookie, Deadline deadline) = 0;
    /// Small-message ping-pong; one end initiates, the other answers. The initiator measures for at
    /// most `rounds` round trips or until the deadline; the answering end's figures are zero.
    [[nodiscard]] virtual Result<Latency> pingPong(bool initiator, int rounds,
                                                   Deadline deadline) = 0;
    /// Streams large messages until `until`, several in flight, then tells the receiver.
    [[nodiscard]] virtual Result<Throughput> send(std::size_t message_bytes,
                                                  Clock::time_point until, Deadline deadline) = 0;
    /// Takes what send() sends, until the sender says that it has ended.
    [[nodiscard]] virtual Status receive(Deadline deadline) = 0;
    // Messages of any length both ways at once, for the collectives; none of the three blocks.
    /// Begins to send `bytes`, which must stay in place until flush() gives true; only then may the
    /// next message be posted. Both ends must cut their traffic into the same messages.
    [[nodiscard]] virtual Status post(std::span<const std::byte> bytes);
    /// Advances what was posted; true once all of it has left.
    [[nodiscard]] virtual Result<bool> flush();
    /// Advances the next incoming message into `bytes` (the same span until it is complete);
    /// true once it has arrived whole.
    [[nodiscard]] virtual Result<bool> take(std::span<std::byte> bytes);
};

/// The way of one agent to its fabric. Owns the devices; outlives its Links.
class Transport {
  public:
    virtual ~Transport() = default;
    [[nodiscard]] virtual ProfileTransport kind() const = 0;
    [[nodiscard]] virtual ProfileGdr gdr() const = 0;  ///< how GPU memory is reached, if it is
    [[nodiscard]] virtual int rails() const = 0;
    [[nodiscard]] virtual std::string railName(int rail) const = 0;  ///< "mlx5_1", "eth0"
    /// What must be equal on both ends of a rail (link layer, subnet); compared as text.
    [[nodiscard]] virtual std::string railIdentity(int rail) const = 0;
    [[nodiscard]] virtual double railNominalGbs(int rail) const = 0;  ///< GB/s; 0: not known
    /// How GPU memory is reached, or why it is not; one sentence, empty when it was not asked for.
    [[nodiscard]] virtual std::string gdrReason() const { return {}; }
    /// A new, unconnected end on a rail.
    [[nodiscard]] virtual Result<std::unique_ptr<Link>> open(int rail) = 0;
};

/// TCP over the interface that holds `bind_address` (empty: any). Always one rail.
[[nodiscard]] Result<std::unique_ptr<Transport>> makeTcpTransport(const std::string& bind_address);

/// What to measure over verbs: HCA ports in rail order, optionally with GPU memory.
struct VerbsRequest {
    struct Rail {
        std::string hca;  ///< verbs name
        int port = 1;
        int gpu = -1;  ///< CUDA device whose memory to use (PCI order); -1: host memory
        std::string gpu_pci;
    };
    std::vector<Rail> rails;
    bool use_gpu_memory = false;
    bool messages = true;  ///< links carry messages too (collectives); costs 256 KiB a link
    // What the job's NCCL will use when the user or the site has set it (NCCL_IB_GID_INDEX,
    // NCCL_IB_TC, NCCL_IB_SL): measure the same traffic class as will be trained in.
    int gid_index = -1;  ///< -1: chosen per rail, see bestGid()
    int traffic_class = 0;
    int service_level = 0;
};

/// Takes what NCCL_IB_GID_INDEX, NCCL_IB_TC and NCCL_IB_SL say in this process's environment;
/// values that are no such numbers are left to NCCL to complain of.
void takeNcclSettings(VerbsRequest& request);

/// Verbs over the given rails. Fails, naming device, port and remedy, when none can be opened;
/// a rail that cannot be opened while others can is reported in `skipped`.
[[nodiscard]] Result<std::unique_ptr<Transport>> makeVerbsTransport(
    const VerbsRequest& request, std::vector<std::string>& skipped);

}  // namespace rdmatune::fabric
