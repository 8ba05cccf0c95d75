// TCP where there is no RDMA: the transport, and how its two ends find and trust each other.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "tuner/base/text.hpp"
#include "tuner/fabric/handshake.hpp"
#include "tuner/fabric/tcp_link.hpp"

namespace rdmatune::fabric {

Status TcpLink::connectActively(const Endpoint& peer, std::string_view cookie, Deadline deadline) {
    Result<Fd> fd = startConnect(peer);
    if (!fd) return fd.error();
    if (!waitReady(fd->get(), POLLOUT, deadline))
        return Error{"cannot connect to " + peer.str() + " in time"};
    if (const std::string why = connectError(fd->get()); !why.empty())
        return Error{"cannot connect to " + peer.str() + ": " + why};
    const Greeting greeting = makeGreeting(Purpose::Data, cookie, 0, 0);
    if (Status status = sendAll(fd->get(), greeting.data(), greeting.size(), deadline); !status)
        return within(peer.str(), status.error());
    // The welcome is read by the first operation: waiting for it here would make one late agent
    // hold up all the others, each waiting for the next.
    welcome_due_ = true;
    socket_ = std::move(*fd);
    return Done{};
}

Status TcpLink::acceptPeer(std::string_view cookie, Deadline deadline) {
    while (waitReady(listener_.get(), POLLIN, deadline)) {
        Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!fd.valid()) {
            if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) continue;
            return Error{own_.str() + ": cannot accept: " + std::strerror(errno)};
        }
        setNoDelay(fd.get());
        // A stranger that connects and says nothing must not use up the peer's time.
        const Deadline patience = std::min(deadline, Clock::now() + std::chrono::milliseconds(200));
        Greeting greeting{};
        if (!receiveAll(fd.get(), greeting.data(), greeting.size(), patience)) {
            logRefused(fd.get(), "it did not introduce itself");
            continue;
        }
        if (!checkGreeting(greeting, Purpose::Data, cookie)) {
            logRefused(fd.get(), "wrong cookie");
            continue;
        }
        if (Status status = sendAll(fd.get(), &kWelcome, 1, deadline); !status) continue;
        socket_ = std::move(fd);
        return Done{};
    }
    return Error{own_.str() + ": the peer did not connect in time"};
}

Status TcpLink::connect(std::string_view peer, bool active, std::string_view cookie,
                        Deadline deadline) {
    const auto endpoint = Endpoint::parse(peer);
    if (!endpoint) return Error{"'" + std::string(peer) + "' is not an address"};
    peer_ = endpoint->str();
    Status status =
        active ? connectActively(*endpoint, cookie, deadline) : acceptPeer(cookie, deadline);
    listener_.reset();
    return status;
}

namespace {

class TcpTransport final : public Transport {
  public:
    explicit TcpTransport(std::string address)
        : address_(std::move(address)), interface_(interfaceOf(address_)) {}

    [[nodiscard]] ProfileTransport kind() const override { return ProfileTransport::Tcp; }
    [[nodiscard]] ProfileGdr gdr() const override { return ProfileGdr::NotTried; }
    [[nodiscard]] int rails() const override { return 1; }
    [[nodiscard]] std::string railName(int) const override {
        return interface_.empty() ? address_ : interface_;
    }
    [[nodiscard]] std::string railIdentity(int) const override { return "tcp"; }

    [[nodiscard]] double railNominalGbs(int) const override {
        std::ifstream file("/sys/class/net/" + interface_ + "/speed");
        double megabits = 0;
        // Virtual interfaces give no speed, or -1.
        if (interface_.empty() || !(file >> megabits) || megabits <= 0) return 0;
        return megabits / 8000;
    }

    [[nodiscard]] Result<std::unique_ptr<Link>> open(int) override {
        std::uint16_t port = 0;
        Result<Fd> listener = listenOn(address_, port);
        if (!listener) return listener.error();
        return std::unique_ptr<Link>(new TcpLink(std::move(*listener), Endpoint{address_, port}));
    }

  private:
    std::string address_;
    std::string interface_;
};

}  // namespace

Result<std::unique_ptr<Transport>> makeTcpTransport(const std::string& bind_address) {
    std::string address = bind_address;
    if (address.empty()) {
        const std::vector<std::string> own = ownAddresses(false, {});
        if (own.empty()) return Error{"no network interface with an IP address is up"};
        address = own.front();
    }
    std::uint16_t port = 0;
    if (Result<Fd> probe = listenOn(address, port); !probe) return probe.error();
    return std::unique_ptr<Transport>(new TcpTransport(std::move(address)));
}

}  // namespace rdmatune::fabric
