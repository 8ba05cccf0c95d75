#include "tuner/fabric/tcp_link.hpp"

#include <endian.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tuner/fabric/handshake.hpp"
#include "tuner/fabric/statistics.hpp"

namespace rdmatune::fabric {
namespace {

constexpr std::size_t kScratch = 256 * 1024;

/// Where bytes go that nobody looks at.
char* scratch() {
    static thread_local std::vector<char> buffer(kScratch);
    return buffer.data();
}

}  // namespace

Error TcpLink::broken(const std::string& why) {
    broken_ = "TCP peer " + peer_ + ": " + why;
    return Error{broken_};
}

Status TcpLink::begin() {
    if (!broken_.empty()) return Error{broken_};
    if (!socket_.valid()) return Error{"TCP link is not connected"};
    ++operation_;
    if (sending() && body_is_callers_) return broken("an unfinished message blocks the connection");
    return Done{};
}

// ---- sending -----------------------------------------------------------------------------------

void TcpLink::queue(Kind kind, std::uint64_t value, const std::byte* body, std::size_t size) {
    const std::uint32_t operation = htole32(operation_);
    const std::uint32_t code = htole32(static_cast<std::uint32_t>(kind));
    const std::uint64_t wide = htole64(value);
    std::memcpy(head_.data(), &operation, 4);
    std::memcpy(head_.data() + 4, &code, 4);
    std::memcpy(head_.data() + 8, &wide, 8);
    head_left_ = kHeader;
    body_ = body;
    body_left_ = size;
    body_is_callers_ = kind == Kind::Message;
}

Result<bool> TcpLink::pump() {
    while (sending()) {
        iovec parts[2] = {{head_.data() + (kHeader - head_left_), head_left_},
                          {const_cast<std::byte*>(body_), body_left_}};
        msghdr message{};
        message.msg_iov = head_left_ > 0 ? parts : parts + 1;
        message.msg_iovlen = head_left_ > 0 && body_left_ > 0 ? 2 : 1;
        const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
            return broken(std::strerror(errno));
        }
        written_ += static_cast<double>(sent);
        const auto head = std::min(static_cast<std::size_t>(sent), head_left_);
        const auto body = static_cast<std::size_t>(sent) - head;
        head_left_ -= head;
        body_left_ -= body;
        if (body > 0) body_ += body;
    }
    return true;
}

Status TcpLink::drain(Deadline deadline) {
    for (;;) {
        const Result<bool> done = pump();
        if (!done) return done.error();
        if (*done) return Done{};
        if (!waitReady(socket_.get(), POLLOUT, deadline))
            return Error{"TCP peer " + peer_ + ": takes no data in time"};
    }
}

Status TcpLink::sendFrame(Kind kind, std::uint64_t value, Deadline deadline) {
    if (sending())
        if (Status status = drain(deadline); !status) return status;
    queue(kind, value);
    return drain(deadline);
}

/// What the peer's kernel has acknowledged, headers included.
double TcpLink::bytesAtPeer() const {
    int unacknowledged = 0;
    if (ioctl(socket_.get(), SIOCOUTQ, &unacknowledged) != 0) unacknowledged = 0;
    return written_ - unacknowledged;
}

// ---- receiving ---------------------------------------------------------------------------------

Result<bool> TcpLink::pull() {
    while (!frame_) {
        if (welcome_due_) {
            char answer = 0;
            const ssize_t got = recv(socket_.get(), &answer, 1, MSG_DONTWAIT);
            if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
                return false;
            if (got != 1 || answer != kWelcome) return broken("did not accept this job's cookie");
            welcome_due_ = false;
        }
        const ssize_t got = recv(socket_.get(), incoming_.data() + incoming_have_,
                                 kHeader - incoming_have_, MSG_DONTWAIT);
        if (got == 0) return broken("closed the connection");
        if (got < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
            return broken(std::strerror(errno));
        }
        incoming_have_ += static_cast<std::size_t>(got);
        if (incoming_have_ < kHeader) continue;
        incoming_have_ = 0;
        std::uint32_t operation = 0;
        std::uint32_t kind = 0;
        std::uint64_t value = 0;
        std::memcpy(&operation, incoming_.data(), 4);
        std::memcpy(&kind, incoming_.data() + 4, 4);
        std::memcpy(&value, incoming_.data() + 8, 8);
        kind = le32toh(kind);
        if (kind < static_cast<std::uint32_t>(Kind::Ping) ||
            kind > static_cast<std::uint32_t>(Kind::Message))
            return broken("sent something that is not a frame");
        frame_ = Frame{le32toh(operation), static_cast<Kind>(kind), le64toh(value)};
        const bool carries = frame_->kind == Kind::Data || frame_->kind == Kind::Message;
        payload_left_ = carries ? frame_->value : 0;
    }
    return true;
}

Result<bool> TcpLink::skipPayload() {
    while (payload_left_ > 0) {
        const std::size_t want = std::min<std::uint64_t>(payload_left_, kScratch);
        const ssize_t got = recv(socket_.get(), scratch(), want, MSG_DONTWAIT);
        if (got == 0) return broken("closed the connection");
        if (got < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
            return broken(std::strerror(errno));
        }
        payload_left_ -= static_cast<std::uint64_t>(got);
    }
    return true;
}

/// The next whole frame of this operation.
Result<TcpLink::Frame> TcpLink::nextFrame(Deadline deadline) {
    for (;;) {
        Result<bool> ready = pull();
        if (!ready) return ready.error();
        if (*ready) {
            // Unsigned distance: the counter may wrap.
            const auto ahead = static_cast<std::int32_t>(frame_->operation - operation_);
            if (ahead > 0) return Error{"TCP peer " + peer_ + ": has gone on to the next step"};
            ready = skipPayload();
            if (!ready) return ready.error();
            if (*ready) {
                const Frame frame = *frame_;
                frame_.reset();
                if (ahead == 0) return frame;
                continue;
            }
        }
        if (!waitReady(socket_.get(), POLLIN, deadline))
            return Error{"TCP peer " + peer_ + ": no answer in time"};
    }
}

// ---- measuring ---------------------------------------------------------------------------------

Result<Latency> TcpLink::pingPong(bool initiator, int rounds, Deadline deadline) {
    if (Status status = begin(); !status) return status.error();
    if (!initiator) {
        for (;;) {
            const Result<Frame> frame = nextFrame(deadline);
            if (!frame) return frame.error();
            if (frame->kind == Kind::PingEnd) return Latency{};
            if (frame->kind != Kind::Ping) continue;
            if (Status status = sendFrame(Kind::Pong, frame->value, deadline); !status)
                return status.error();
        }
    }
    constexpr int kWarmUp = 3;
    std::vector<double> one_way_us;
    one_way_us.reserve(static_cast<std::size_t>(rounds));
    std::string failure = "TCP peer " + peer_ + ": no answer in time";
    for (int round = -kWarmUp; round < rounds && Clock::now() < deadline; ++round) {
        const auto start = Clock::now();
        Status sent = sendFrame(Kind::Ping, static_cast<std::uint64_t>(round + kWarmUp), deadline);
        if (!sent) {
            failure = sent.error().message;
            break;
        }
        const Result<Frame> answer = nextFrame(deadline);
        if (!answer) {
            failure = answer.error().message;
            break;
        }
        const std::chrono::duration<double, std::micro> trip = Clock::now() - start;
        // A link so slow that only the warm-up fits has a figure all the same.
        if (round >= 0 || one_way_us.empty()) one_way_us.push_back(trip.count() / 2);
        if (round == 0) one_way_us.erase(one_way_us.begin());
    }
    if (!broken_.empty()) return Error{broken_};
    // The peer leaves by its own deadline should this frame not fit any more.
    if (Status status = sendFrame(Kind::PingEnd, 0, deadline + std::chrono::milliseconds(1));
        !status && one_way_us.empty())
        return status.error();
    if (one_way_us.empty()) return Error{failure};
    return latencyOf(one_way_us);
}

Result<Throughput> TcpLink::send(std::size_t message_bytes, Clock::time_point until,
                                 Deadline deadline) {
    static const std::vector<std::byte> payload(4 << 20);
    const std::size_t size = std::clamp<std::size_t>(message_bytes, 1, payload.size());
    if (Status status = begin(); !status) return status.error();
    if (Status status = drain(deadline); !status) return status.error();
    // The first quarter fills buffers and opens the congestion window; it is not counted.
    const auto start = Clock::now();
    const auto counted_from = start + (until - start) / 4;
    auto mark_time = start;
    double mark_bytes = bytesAtPeer();
    bool marked = false;
    while (Clock::now() < until) {
        if (!marked && Clock::now() >= counted_from) {
            mark_time = Clock::now();
            mark_bytes = bytesAtPeer();
            marked = true;
        }
        if (!sending()) queue(Kind::Data, size, payload.data(), size);
        const Result<bool> done = pump();
        if (!done) return done.error();
        if (!*done) (void)waitReady(socket_.get(), POLLOUT, marked ? until : counted_from);
    }
    Throughput out;
    out.bytes = bytesAtPeer() - mark_bytes;
    out.seconds = std::chrono::duration<double>(Clock::now() - mark_time).count();
    Status ended = sendFrame(Kind::DataEnd, 0, deadline);
    while (ended) {
        const Result<Frame> answer = nextFrame(deadline);
        if (!answer) ended = answer.error();
        if (answer && answer->kind == Kind::DataAck) break;
    }
    // Without the receiver's word the figure stands by what its kernel acknowledged.
    if (!broken_.empty()) return Error{broken_};
    if (out.bytes <= 0) return Error{"TCP peer " + peer_ + ": took no data in time"};
    return out;
}

Status TcpLink::receive(Deadline deadline) {
    if (Status status = begin(); !status) return status;
    for (;;) {
        const Result<Frame> frame = nextFrame(deadline);
        if (!frame) return frame.error();
        if (frame->kind == Kind::DataEnd) return sendFrame(Kind::DataAck, 0, deadline);
    }
}

// ---- messages for the collectives --------------------------------------------------------------

Status TcpLink::post(std::span<const std::byte> bytes) {
    if (!broken_.empty()) return Error{broken_};
    if (sending()) return Error{"TCP peer " + peer_ + ": the previous message has not left yet"};
    queue(Kind::Message, bytes.size(), bytes.data(), bytes.size());
    return Done{};
}

Result<bool> TcpLink::flush() {
    if (!broken_.empty()) return Error{broken_};
    return pump();
}

Result<bool> TcpLink::take(std::span<std::byte> bytes) {
    if (!broken_.empty()) return Error{broken_};
    const Result<bool> ready = pull();
    if (!ready || !*ready) return ready;
    if (frame_->kind != Kind::Message) {  // left over from a measurement that was cut short
        const Result<bool> skipped = skipPayload();
        if (skipped && *skipped) frame_.reset();
        return skipped ? Result<bool>(false) : skipped;
    }
    if (frame_->value != bytes.size())
        return broken("sent a message of another size than expected");
    while (payload_left_ > 0) {
        const ssize_t got = recv(socket_.get(), bytes.data() + (bytes.size() - payload_left_),
                                 payload_left_, MSG_DONTWAIT);
        if (got == 0) return broken("closed the connection");
        if (got < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
            return broken(std::strerror(errno));
        }
        payload_left_ -= static_cast<std::uint64_t>(got);
    }
    frame_.reset();
    return true;
}

}  // namespace rdmatune::fabric
