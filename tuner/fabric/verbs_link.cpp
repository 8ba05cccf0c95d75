#include "tuner/fabric/verbs_link.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tuner/fabric/verbs_error.hpp"
#include "tuner/fabric/verbs_layout.hpp"

namespace rdmatune::fabric {

using namespace layout;

namespace {

using std::chrono::milliseconds;

/// Polls before the CPU is given away for the first time, and between later times. A round trip of
/// InfiniBand ends within the first stretch, so a real device never pays for the system call; on
/// soft-RoCE the kernel's thread that delivers the packet may be waiting for this very CPU.
constexpr int kSpinFirst = 2000;
constexpr int kSpinAgain = 200;
constexpr auto kSleep = std::chrono::microseconds(20);
constexpr auto kPortCheck = milliseconds(100);

bool sameText(std::string_view a, std::string_view b) {
    // In a time that does not tell how much of it was right.
    unsigned different = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    return different == 0;
}

}  // namespace

Result<std::unique_ptr<Link>> VerbsLink::create(const VerbsRail& rail) {
    Result<RcQueue> queue = RcQueue::create(rail.port, rail.traffic_class, rail.service_level);
    if (!queue) return queue.error();
    std::unique_ptr<VerbsLink> link(new VerbsLink(rail, std::move(queue.value())));
    link->control_ = HostBuffer(rail.messages ? kWithMessages : kControlPage);
    if (link->control_.data() == nullptr)
        return Error{rail.port.label + ": out of memory for a link"};
    errno = 0;
    link->control_region_.reset(ibv_reg_mr(rail.port.domain.get(), link->control_.data(),
                                           link->control_.size(),
                                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    if (!link->control_region_)
        return verbsError(rail.port.label, "registering a link's memory", errno);

    VerbsAddress& self = link->self_;
    self.ethernet = rail.port.hca.link_layer == LinkLayer::Ethernet;
    self.roce_v1 = rail.port.roce_v1;
    self.messages = rail.messages;
    self.mtu = rail.port.mtu;
    self.lid = static_cast<std::uint16_t>(rail.port.hca.lid);
    self.qpn = link->queue_.number();
    self.psn = link->queue_.psn();
    self.gid = rail.port.gid;
    self.rd_atomic = rail.port.rd_atomic;
    self.control_key = link->control_region_->rkey;
    self.control = reinterpret_cast<std::uint64_t>(link->control_.data());
    self.stream_key = rail.stream->rkey;
    self.stream = rail.streamAddress();
    return std::unique_ptr<Link>(std::move(link));
}

// ---- waiting -----------------------------------------------------------------------------------

std::uint64_t VerbsLink::word(std::size_t offset) const {
    auto* place = reinterpret_cast<std::uint64_t*>(control_.data() + offset);
    return std::atomic_ref<std::uint64_t>(*place).load(std::memory_order_acquire);
}

Write VerbsLink::wordWrite(std::size_t offset, std::uint64_t value) {
    // Where the device has no inline data the word is read from here later; by then it may have
    // grown further, which only says sooner what is true anyway.
    std::byte* place = control_.data() + kOutgoing + offset;
    std::memcpy(place, &value, sizeof value);
    return {.source = place,
            .bytes = sizeof value,
            .local_key = control_region_->lkey,
            .target = peer_.control + offset,
            .remote_key = peer_.control_key};
}

Status VerbsLink::writeWord(std::size_t offset, std::uint64_t value, bool signaled) {
    const Write write = wordWrite(offset, value);
    return queue_.write(std::span(&write, 1), signaled);
}

Status VerbsLink::portAlive() const {
    ibv_port_attr attributes{};
    const VerbsPort& port = rail_->port;
    const int rc =
        ibv_query_port(port.context.get(), static_cast<std::uint8_t>(port.port), &attributes);
    if (rc != 0) return verbsError(port.label, "querying the port while measuring", rc);
    if (attributes.state != IBV_PORT_ACTIVE && attributes.state != IBV_PORT_ACTIVE_DEFER)
        return Error{fmt::format("{} to {}: the port went {} while measuring", port.label,
                                 queue_.peerText(), ibv_port_state_str(attributes.state))};
    return Done{};
}

Error VerbsLink::late(std::string_view what) const {
    if (Status status = portAlive(); !status) return status.error();
    return Error{
        fmt::format("{} to {}: time is up while {}; the peer may be slow, hang or have ended",
                    rail_->port.label, queue_.peerText(), what)};
}

Status VerbsLink::waitUntil(const std::function<bool()>& ready, Deadline deadline,
                            Patience patience, std::string_view what) {
    int spins = 0;
    int next_pause = kSpinFirst;
    Clock::time_point next_check = Clock::now() + kPortCheck;
    while (!ready()) {
        if (patience == Patience::Spin && ++spins < next_pause) continue;
        next_pause = spins + kSpinAgain;
        if (Status status = queue_.reap(what); !status) return status;
        if (ready()) break;
        const auto now = Clock::now();
        if (now >= deadline) return late(what);
        if (now >= next_check) {
            if (Status status = portAlive(); !status) return status;
            next_check = now + kPortCheck;
        }
        if (patience == Patience::Spin)
            sched_yield();
        else
            std::this_thread::sleep_for(kSleep);
    }
    return Done{};
}

// ---- connecting --------------------------------------------------------------------------------

Status VerbsLink::connect(std::string_view peer, bool active, std::string_view cookie, Deadline) {
    const auto parsed = VerbsAddress::parse(peer);
    if (!parsed)
        return Error{fmt::format("{}: '{}' is no verbs address of this version of rdma-tune",
                                 rail_->port.label, peer)};
    if (const std::string why = mismatch(self_, *parsed); !why.empty())
        return Error{fmt::format("{} to {}: {}", rail_->port.label, parsed->describe(), why)};
    if (cookie.empty() || cookie.size() > kCookieMax)
        return Error{fmt::format("{}: a cookie has 1 to {} characters, this one {}",
                                 rail_->port.label, kCookieMax, cookie.size())};
    peer_ = *parsed;
    active_ = active;
    cookie_ = cookie;
    if (Status status = queue_.connect(self_, peer_); !status) return status;
    connected_ = true;
    return Done{};
}

Status VerbsLink::sendHello(std::uint64_t state) {
    std::byte* place = control_.data() + kOutgoing + kCookie;
    const std::uint64_t length = state == kGreeting ? cookie_.size() : 0;
    std::memcpy(place, cookie_.data(), length);
    const std::array<Write, 2> writes = {Write{.source = place,
                                               .bytes = static_cast<std::uint32_t>(length),
                                               .local_key = control_region_->lkey,
                                               .target = peer_.control + kCookie,
                                               .remote_key = peer_.control_key},
                                         wordWrite(kHello, state | length)};
    // Signaled, so that a peer that is not there becomes an error of this queue.
    return queue_.write(length > 0 ? std::span(writes) : std::span(writes).subspan(1), true);
}

Status VerbsLink::checkHello() {
    const std::uint64_t state = word(kHello);
    const std::string where = fmt::format("{} to {}", rail_->port.label, queue_.peerText());
    if ((state & kRefusal) != 0)
        return Error{where + ": the peer refused this end's cookie; it belongs to another job"};
    const std::size_t length = state & 0xffffffff;
    const auto* text = reinterpret_cast<const char*>(control_.data() + kCookie);
    if (length <= kCookieMax && sameText(std::string_view(text, length), cookie_)) return Done{};
    return Error{where + ": refused a peer with a wrong cookie; it belongs to another job"};
}

/// The active end greets first. Until the passive end has answered nothing arrives at the active
/// one, so it may start its queue pair afresh when the peer was not there yet.
Status VerbsLink::hello(Deadline deadline) {
    if (greeted_) return Done{};
    if (!connected_) return Error{rail_->port.label + ": used before it was connected"};
    const auto arrived = [this] { return word(kHello) != 0; };
    if (active_) {
        for (;;) {
            if (Status status = sendHello(kGreeting); !status) return status;
            Status status =
                waitUntil(arrived, deadline, Patience::Spin, "waiting for the peer's hello");
            if (status) break;
            if (!queue_.unanswered() || Clock::now() >= deadline) return status;
            if (Status again = queue_.reconnect(); !again) return again;
        }
        // The hello's own completion must not be taken for a later write's.
        const auto sent = [this] { return queue_.idle(); };
        if (Status status = waitUntil(sent, deadline, Patience::Spin, "greeting the peer"); !status)
            return status;
        if (Status status = checkHello(); !status) return status;
    } else {
        if (Status status =
                waitUntil(arrived, deadline, Patience::Spin, "waiting for the peer's hello");
            !status)
            return status;
        Status good = checkHello();
        if (Status status = sendHello(good ? kGreeting : kRefusal); !status) return status;
        const auto sent = [this] { return queue_.idle(); };
        if (Status status = waitUntil(sent, deadline, Patience::Spin, "answering the peer's hello");
            !status && good)
            return status;
        if (!good) return good;
    }
    greeted_ = true;
    return Done{};
}

}  // namespace rdmatune::fabric
