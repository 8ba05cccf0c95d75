// A Link over one RC queue pair.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tuner/fabric/qp.hpp"
#include "tuner/fabric/transport.hpp"
#include "tuner/fabric/verbs_rail.hpp"

namespace rdmatune::fabric {

/// Everything is an RDMA WRITE into the peer's control page, message slots or stream buffer; words
/// of the control page, each on a cache line of its own, say what has arrived. The writes of one
/// queue pair take effect in order, so a word is visible only after the data it announces.
///
/// connect() is local. The hello that carries the cookie is exchanged by the first measuring call:
/// by then both ends are connected, and no order of connecting several links can deadlock.
class VerbsLink final : public Link {
  public:
    /// `rail` must outlive the link.
    [[nodiscard]] static Result<std::unique_ptr<Link>> create(const VerbsRail& rail);

    [[nodiscard]] std::string address() const override { return self_.str(); }
    [[nodiscard]] Status connect(std::string_view peer, bool active, std::string_view cookie,
                                 Deadline deadline) override;
    [[nodiscard]] Result<Latency> pingPong(bool initiator, int rounds, Deadline deadline) override;
    [[nodiscard]] Result<Throughput> send(std::size_t message_bytes, Clock::time_point until,
                                          Deadline deadline) override;
    [[nodiscard]] Status receive(Deadline deadline) override;
    [[nodiscard]] Status post(std::span<const std::byte> bytes) override;
    [[nodiscard]] Result<bool> flush() override;
    [[nodiscard]] Result<bool> take(std::span<std::byte> bytes) override;

  private:
    /// How a wait uses the CPU.
    enum class Patience {
        Spin,  ///< poll; give the CPU away now and then, since soft-RoCE needs it to make progress
        Sleep  ///< poll rarely: nothing is timed by this wait
    };

    VerbsLink(const VerbsRail& rail, RcQueue queue) : rail_(&rail), queue_(std::move(queue)) {}
    [[nodiscard]] std::uint64_t word(std::size_t offset) const;
    [[nodiscard]] Write wordWrite(std::size_t offset, std::uint64_t value);
    [[nodiscard]] Status writeWord(std::size_t offset, std::uint64_t value, bool signaled);
    [[nodiscard]] Status waitUntil(const std::function<bool()>& ready, Deadline deadline,
                                   Patience patience, std::string_view what);
    [[nodiscard]] Error late(std::string_view what) const;
    [[nodiscard]] Status portAlive() const;
    [[nodiscard]] Status hello(Deadline deadline);
    [[nodiscard]] Status sendHello(std::uint64_t state);
    [[nodiscard]] Status checkHello();
    [[nodiscard]] Status ping(std::uint64_t value);
    [[nodiscard]] Result<Latency> initiate(int rounds, Deadline deadline);
    [[nodiscard]] Result<Latency> answer(Deadline deadline);
    [[nodiscard]] Status writeStream(std::size_t offset, std::uint32_t bytes);
    [[nodiscard]] Status checkMessages();

    const VerbsRail* rail_;
    HostBuffer control_;           ///< control page, incoming slots, outgoing slots
    MemoryRegion control_region_;  ///< freed after the queue that uses it, before the memory
    RcQueue queue_;
    VerbsAddress self_, peer_;
    std::string cookie_;
    bool active_ = false;
    bool connected_ = false;
    bool greeted_ = false;
    std::uint64_t pings_sent_ = 0, pings_seen_ = 0;
    std::uint64_t ends_sent_ = 0, ends_seen_ = 0;
    // Messages: slots filled and emptied, counted since the beginning.
    std::deque<std::span<const std::byte>> pending_;
    std::uint64_t head_sent_ = 0, head_taken_ = 0;
    std::size_t take_offset_ = 0;
};

}  // namespace rdmatune::fabric
