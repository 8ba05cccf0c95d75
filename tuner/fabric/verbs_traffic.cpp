// What a verbs link does once it is connected: ping-pong, streams, messages.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "tuner/fabric/verbs_layout.hpp"
#include "tuner/fabric/verbs_link.hpp"

namespace rdmatune::fabric {

using namespace layout;

namespace {

using std::chrono::milliseconds;

constexpr int kWarmUpRounds = 16;  // or a quarter of the time, if that is less

/// Longer messages are cut into writes: of 64 KiB while the path is slow, so that little has to be
/// waited for at the end; of 256 KiB, half of NCCL's network chunk, where it is fast.
constexpr std::size_t kPieceSlow = std::size_t{64} << 10;
constexpr std::size_t kPieceFast = std::size_t{256} << 10;
constexpr double kFast = 1e9;  // bytes per second
/// Writes under way at once: never fewer than 2, never more than 64, otherwise what the path
/// carries in kInFlight, which fills any path.
constexpr double kInFlight = 0.004;  // seconds
constexpr std::size_t kWindowMin = 2;
constexpr std::size_t kWindowMax = 64;

double micros(Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
}

double at(const std::vector<double>& sorted, double fraction) {
    return sorted[static_cast<std::size_t>(fraction * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

// ---- small messages ----------------------------------------------------------------------------

/// On GPU memory the payload is written there and the word that is polled to the host, since the
/// CPU cannot poll a GPU's memory: what NCCL does for its small messages, too.
Status VerbsLink::ping(std::uint64_t value) {
    if (queue_.room() < RcQueue::kDepth / 2)
        if (Status status = queue_.reap("a ping"); !status) return status;
    if (!rail_->onGpu()) return writeWord(kPing, value, false);
    const std::array<Write, 2> writes = {
        Write{.source = reinterpret_cast<const void*>(rail_->streamAddress() + kStreamHalf),
              .bytes = sizeof value,
              .local_key = rail_->stream->lkey,
              .target = peer_.stream,
              .remote_key = peer_.stream_key,
              .from_gpu = true},
        wordWrite(kPing, value)};
    return queue_.write(writes, false);
}

Result<Latency> VerbsLink::pingPong(bool initiator, int rounds, Deadline deadline) {
    if (Status status = hello(deadline); !status) return status.error();
    return initiator ? initiate(rounds, deadline) : answer(deadline);
}

Result<Latency> VerbsLink::initiate(int rounds, Deadline deadline) {
    // The last ping must reach the peer before its own deadline.
    const auto begin = Clock::now();
    const auto stop =
        deadline - std::min<Clock::duration>((deadline - begin) / 4, milliseconds(20));
    std::vector<double> one_way;
    one_way.reserve(static_cast<std::size_t>(std::max(rounds, 0)));
    for (int round = -kWarmUpRounds; round < rounds; ++round) {
        const auto start = Clock::now();
        if (start >= stop) break;
        // Where a round takes long, warming up must not use up the time.
        if (round < 0 && start - begin > (stop - begin) / 4) round = 0;
        if (Status status = ping(++pings_sent_); !status) return status.error();
        const auto answered = [this] { return word(kPing) > pings_seen_; };
        if (Status status = waitUntil(answered, deadline, Patience::Spin, "waiting for an answer");
            !status)
            return status.error();
        const auto end = Clock::now();
        pings_seen_ = word(kPing);
        if (round >= 0) one_way.push_back(micros(end - start) / 2);
    }
    if (Status status = ping(++pings_sent_ | kLastPing); !status) return status.error();
    if (one_way.empty())
        return Error{fmt::format("{} to {}: no round trip was completed in time", rail_->port.label,
                                 queue_.peerText())};
    std::ranges::sort(one_way);
    return Latency{.min_us = one_way.front(),
                   .median_us = at(one_way, 0.5),
                   .p99_us = at(one_way, 0.99),
                   .samples = static_cast<int>(one_way.size())};
}

Result<Latency> VerbsLink::answer(Deadline deadline) {
    for (;;) {
        const auto asked = [this] { return (word(kPing) & ~kLastPing) > pings_seen_; };
        if (Status status = waitUntil(asked, deadline, Patience::Spin, "waiting for a ping");
            !status)
            return status.error();
        const std::uint64_t value = word(kPing);
        pings_seen_ = value & ~kLastPing;
        if ((value & kLastPing) != 0) return Latency{};
        if (Status status = ping(++pings_sent_); !status) return status.error();
    }
}

// ---- large messages ----------------------------------------------------------------------------

/// One write of `bytes` into the peer's stream buffer, from and to the place after `offset`.
Status VerbsLink::writeStream(std::size_t offset, std::uint32_t bytes) {
    const std::size_t place = offset % (kStreamHalf - bytes + 1);
    const Write write{
        .source = reinterpret_cast<const void*>(rail_->streamAddress() + kStreamHalf + place),
        .bytes = bytes,
        .local_key = rail_->stream->lkey,
        .target = peer_.stream + place,
        .remote_key = peer_.stream_key,
        .from_gpu = rail_->onGpu()};
    return queue_.write(std::span(&write, 1), true);
}

Result<Throughput> VerbsLink::send(std::size_t message_bytes, Clock::time_point until,
                                   Deadline deadline) {
    if (Status status = hello(deadline); !status) return status.error();
    const auto begin = Clock::now();
    auto last = begin;
    std::size_t piece = std::clamp<std::size_t>(message_bytes, 1, kPieceSlow);
    std::size_t window = kWindowMin;
    std::size_t offset = 0;
    double done = 0;
    std::deque<std::uint32_t> under_way;  // the sizes of the writes, which complete in order
    std::uint64_t counted = queue_.completed();
    const auto progressed = [&] { return queue_.completed() > counted; };
    while (last < until || !under_way.empty()) {
        while (last < until && under_way.size() < window && queue_.room() > 1) {
            const auto bytes = static_cast<std::uint32_t>(piece);
            if (Status status = writeStream(offset, bytes); !status) return status.error();
            under_way.push_back(bytes);
            offset += bytes;
        }
        if (Status status = queue_.reap("a large write"); !status) return status.error();
        if (!progressed())
            if (Status status =
                    waitUntil(progressed, deadline, Patience::Spin, "sending large messages");
                !status)
                return status.error();
        last = Clock::now();
        for (; counted < queue_.completed() && !under_way.empty(); ++counted) {
            done += under_way.front();
            under_way.pop_front();
        }
        const double rate = done / (micros(last - begin) * 1e-6);
        piece = std::clamp<std::size_t>(message_bytes, 1, rate > kFast ? kPieceFast : kPieceSlow);
        window = std::clamp(static_cast<std::size_t>(rate * kInFlight / static_cast<double>(piece)),
                            kWindowMin, kWindowMax);
    }
    const Throughput out{.bytes = done, .seconds = micros(last - begin) * 1e-6};
    if (Status status = writeWord(kEnd, ++ends_sent_, true); !status) return status.error();
    const auto idle = [this] { return queue_.idle(); };
    if (Status status = waitUntil(idle, deadline, Patience::Spin, "ending a stream"); !status)
        return status.error();
    return out;
}

Status VerbsLink::receive(Deadline deadline) {
    if (Status status = hello(deadline); !status) return status;
    const auto ended = [this] { return word(kEnd) > ends_seen_; };
    if (Status status = waitUntil(ended, deadline, Patience::Sleep, "receiving large messages");
        !status)
        return status;
    ++ends_seen_;
    return Done{};
}

// ---- messages ----------------------------------------------------------------------------------

Status VerbsLink::checkMessages() {
    if (!rail_->messages)
        return Error{rail_->port.label + ": the link was opened without messages"};
    if (!greeted_) return Error{rail_->port.label + ": messages before the peer was greeted"};
    return Done{};
}

Status VerbsLink::post(std::span<const std::byte> bytes) {
    if (Status status = checkMessages(); !status) return status;
    if (!bytes.empty()) pending_.push_back(bytes);
    if (Result<bool> flushed = flush(); !flushed) return flushed.error();
    return Done{};
}

Result<bool> VerbsLink::flush() {
    if (Status status = checkMessages(); !status) return status.error();
    if (Status status = queue_.reap("a message"); !status) return status.error();
    while (!pending_.empty() && head_sent_ - word(kTail) < kSlots && queue_.room() > 2) {
        std::span<const std::byte>& message = pending_.front();
        const std::size_t bytes = std::min(message.size(), kSlotBytes);
        const std::size_t slot = head_sent_ % kSlots * kSlotBytes;
        // The peer has emptied this slot, so the write that filled it last has been sent.
        std::byte* staging = control_.data() + kStaging + slot;
        std::memcpy(staging, message.data(), bytes);
        const std::array<Write, 2> writes = {Write{.source = staging,
                                                   .bytes = static_cast<std::uint32_t>(bytes),
                                                   .local_key = control_region_->lkey,
                                                   .target = peer_.control + kIncoming + slot,
                                                   .remote_key = peer_.control_key},
                                             wordWrite(kHead, ++head_sent_)};
        if (Status status = queue_.write(writes, false); !status) return status.error();
        message = message.subspan(bytes);
        if (message.empty()) pending_.pop_front();
    }
    return pending_.empty();
}

Result<bool> VerbsLink::take(std::span<std::byte> bytes) {
    if (Status status = checkMessages(); !status) return status.error();
    while (take_offset_ < bytes.size()) {
        if (word(kHead) == head_taken_ || queue_.room() < 2) {
            if (Status status = queue_.reap("taking a message"); !status) return status.error();
            return false;
        }
        const std::size_t now = std::min(bytes.size() - take_offset_, kSlotBytes);
        std::memcpy(bytes.data() + take_offset_,
                    control_.data() + kIncoming + head_taken_ % kSlots * kSlotBytes, now);
        take_offset_ += now;
        if (Status status = writeWord(kTail, ++head_taken_, false); !status) return status.error();
    }
    take_offset_ = 0;
    return true;
}

}  // namespace rdmatune::fabric
