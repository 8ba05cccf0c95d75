// A reliable-connected queue pair that only writes: RDMA WRITE needs no receive requests, and what
// arrives is found by polling memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tuner/base/result.hpp"
#include "tuner/fabric/verbs_address.hpp"
#include "tuner/fabric/verbs_device.hpp"
#include "tuner/fabric/verbs_handles.hpp"

namespace rdmatune::fabric {

/// Local ACK timeout 4.096 us * 2^14 = 67 ms, tried 1 + 7 times: a dead peer is an error after 0.54
/// s, or 2.1 s on devices that use the whole fourfold margin which the InfiniBand specification
/// (volume 1, C9-139 and 140) allows them. Both are less than the default budget of 5 s.
inline constexpr int kAckTimeout = 14;
inline constexpr int kRetries = 7;

/// One RDMA WRITE.
struct Write {
    const void* source = nullptr;
    std::uint32_t bytes = 0;
    std::uint32_t local_key = 0;  ///< not looked at when the write goes inline
    std::uint64_t target = 0;
    std::uint32_t remote_key = 0;
    bool from_gpu = false;  ///< the CPU cannot read the source, so it never goes inline
};

class RcQueue {
  public:
    /// Requests that may be under way at once.
    static constexpr std::uint64_t kDepth = 256;

    /// A queue pair in state INIT. `port` must outlive it.
    [[nodiscard]] static Result<RcQueue> create(const VerbsPort& port, int traffic_class,
                                                int service_level);

    [[nodiscard]] std::uint32_t number() const { return queue_pair_->qp_num; }
    [[nodiscard]] std::uint32_t psn() const { return psn_; }

    /// INIT to RTR to RTS towards `peer`. Local: the peer need not be there yet.
    [[nodiscard]] Status connect(const VerbsAddress& self, const VerbsAddress& peer);
    /// The same again after an error, as if nothing had been sent. Only while nothing arrived.
    [[nodiscard]] Status reconnect();

    /// Requests that can be posted now.
    [[nodiscard]] std::uint64_t room() const { return kDepth - (posted_ - retired_); }
    [[nodiscard]] bool idle() const { return posted_ == retired_; }
    /// Posts one or two writes that the peer sees in this order. `signaled` makes the last one
    /// count in completed(); others are asked for a completion now and then. Needs room().
    [[nodiscard]] Status write(std::span<const Write> writes, bool signaled);
    /// Takes completions, without waiting. `what` names the work in an error.
    [[nodiscard]] Status reap(std::string_view what);
    /// Signaled writes that have completed.
    [[nodiscard]] std::uint64_t completed() const { return completed_; }
    /// Whether the last error of reap() was that the peer never acknowledged.
    [[nodiscard]] bool unanswered() const { return last_status_ == IBV_WC_RETRY_EXC_ERR; }

    [[nodiscard]] const std::string& peerText() const { return peer_text_; }

  private:
    explicit RcQueue(const VerbsPort& port) : port_(&port) {}
    [[nodiscard]] Status createPair();
    [[nodiscard]] Status toInit();
    [[nodiscard]] Status toReady();

    const VerbsPort* port_;
    CompletionQueue completions_;  // outlives the pair: declared before it
    QueuePair queue_pair_;
    int traffic_class_ = 0;
    int service_level_ = 0;
    std::uint32_t psn_ = 0;
    std::uint32_t inline_bytes_ = 0;
    VerbsAddress self_, peer_;
    std::string peer_text_;
    std::uint64_t posted_ = 0;
    std::uint64_t retired_ = 0;
    std::uint64_t completed_ = 0;
    std::uint64_t since_signal_ = 0;
    ibv_wc_status last_status_ = IBV_WC_SUCCESS;
};

}  // namespace rdmatune::fabric
