#include "tuner/fabric/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tuner/base/text.hpp"

namespace rdmatune::fabric {
namespace {

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;
    [[nodiscard]] const sockaddr* get() const {
        return reinterpret_cast<const sockaddr*>(&storage);
    }
};

std::optional<SocketAddress> toSocketAddress(const Endpoint& endpoint) {
    SocketAddress out;
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
    if (inet_pton(AF_INET, endpoint.address.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(endpoint.port);
        out.size = sizeof *v4;
        return out;
    }
    if (inet_pton(AF_INET6, endpoint.address.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(endpoint.port);
        out.size = sizeof *v6;
        return out;
    }
    return std::nullopt;
}

Error systemError(const std::string& what) {
    return Error{what + ": " + std::strerror(errno)};
}

std::uint16_t boundPort(int fd) {
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return 0;
    return own.ss_family == AF_INET6 ? ntohs(reinterpret_cast<sockaddr_in6*>(&own)->sin6_port)
                                     : ntohs(reinterpret_cast<sockaddr_in*>(&own)->sin_port);
}

constexpr int kBacklog = 256;

}  // namespace

std::string Endpoint::str() const {
    const bool v6 = address.find(':') != std::string::npos;
    return (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

std::optional<Endpoint> Endpoint::parse(std::string_view text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto port = parseInt<std::uint16_t>(text.substr(colon + 1));
    std::string_view address = text.substr(0, colon);
    if (address.size() > 2 && address.front() == '[' && address.back() == ']')
        address = address.substr(1, address.size() - 2);
    else if (address.find(':') != std::string_view::npos)
        return std::nullopt;
    if (!port || *port == 0) return std::nullopt;
    Endpoint out{std::string(address), *port};
    if (!toSocketAddress(out)) return std::nullopt;
    return out;
}

std::string peerName(int fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0)
        return "a closed connection";
    char text[INET6_ADDRSTRLEN] = "?";
    if (peer.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6*>(&peer)->sin6_addr, text, sizeof text);
    else
        inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(&peer)->sin_addr, text, sizeof text);
    const std::string_view shown = text;
    return std::string(shown.starts_with("::ffff:") ? shown.substr(7) : shown);
}

Result<Fd> listenOn(const std::string& address, std::uint16_t& port) {
    const auto attempt = [&](const std::string& where) -> Result<Fd> {
        Endpoint endpoint{where, 0};
        const auto target = toSocketAddress(endpoint);
        if (!target) return Error{"cannot listen on '" + where + "': not a numeric IP address"};
        Fd fd(socket(target->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (!fd.valid()) return systemError("cannot make a socket for " + where);
        if (target->storage.ss_family == AF_INET6 && address.empty()) {
            const int off = 0;
            setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        }
        if (bind(fd.get(), target->get(), target->size) != 0)
            return systemError("cannot bind to " + where);
        if (listen(fd.get(), kBacklog) != 0) return systemError("cannot listen on " + where);
        port = boundPort(fd.get());
        return fd;
    };
    if (!address.empty()) return attempt(address);
    Result<Fd> both = attempt("::");
    return both ? std::move(both) : attempt("0.0.0.0");
}

Result<Fd> startConnect(const Endpoint& to) {
    const auto target = toSocketAddress(to);
    if (!target) return Error{"'" + to.str() + "' is not a numeric address and a port"};
    Fd fd(socket(target->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return systemError("cannot make a socket for " + to.str());
    setNoDelay(fd.get());
    if (connect(fd.get(), target->get(), target->size) != 0 && errno != EINPROGRESS)
        return systemError("cannot connect to " + to.str());
    return fd;
}

std::string connectError(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    return error == 0 ? std::string() : std::string(std::strerror(error));
}

void setNoDelay(int fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool waitReady(int fd, short events, Deadline deadline) {
    for (;;) {
        const auto left = deadline - Clock::now();
        if (left <= Clock::duration::zero()) return false;
        const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
        const timespec limit{static_cast<time_t>(ns / 1'000'000'000),
                             static_cast<long>(ns % 1'000'000'000)};
        pollfd entry{fd, events, 0};
        const int ready = ppoll(&entry, 1, &limit, nullptr);
        if (ready > 0) return true;  // an error or a hang-up shows in the call that follows
        if (ready < 0 && errno != EINTR) return false;
    }
}

Status sendAll(int fd, const void* data, std::size_t size, Deadline deadline) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t sent = send(fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            at += sent;
            size -= static_cast<std::size_t>(sent);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!waitReady(fd, POLLOUT, deadline)) return Error{"takes no more data in time"};
        } else if (errno != EINTR) {
            return systemError("cannot send");
        }
    }
    return Done{};
}

Status receiveAll(int fd, void* data, std::size_t size, Deadline deadline) {
    char* at = static_cast<char*>(data);
    while (size > 0) {
        const ssize_t got = recv(fd, at, size, MSG_DONTWAIT);
        if (got > 0) {
            at += got;
            size -= static_cast<std::size_t>(got);
        } else if (got == 0) {
            return Error{"closed the connection"};
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!waitReady(fd, POLLIN, deadline)) return Error{"no answer in time"};
        } else if (errno != EINTR) {
            return systemError("cannot receive");
        }
    }
    return Done{};
}

bool equalSecret(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    return difference == 0;
}

}  // namespace rdmatune::fabric
