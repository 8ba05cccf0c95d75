#include "tuner/fabric/mesh.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rdmatune::fabric {

/// A connection that this end makes; tries the peer's addresses one after the other.
struct Mesh::Outgoing {
    int peer = 0;
    std::size_t next_address = 0;
    Fd fd;
    bool greeted = false;
    Deadline address_deadline;
    std::string error = "no address of it is known";
    bool done = false;
};

/// A connection that came in and has not proved itself yet.
struct Mesh::Incoming {
    Fd fd;
    Greeting greeting{};
    std::size_t have = 0;
};

namespace {

/// An address that a filter drops gives no error; the next one gets its turn after this.
constexpr auto kAddressPatience = std::chrono::milliseconds(400);
/// More unproven connections than this at once are strangers'.
constexpr std::size_t kMostStrangers = 128;

std::string numericAddress(const sockaddr_storage& own) {
    char text[INET6_ADDRSTRLEN] = "";
    if (own.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&own)->sin6_addr, text,
                  sizeof text);
    else
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&own)->sin_addr, text,
                  sizeof text);
    const std::string_view shown = text;
    return std::string(shown.starts_with("::ffff:") ? shown.substr(7) : shown);
}

}  // namespace

void Mesh::startNext(Outgoing& out) {
    out.fd.reset();
    out.greeted = false;
    const auto& addresses = table_[out.peer];
    while (out.next_address < addresses.size()) {
        const Endpoint& endpoint = addresses[out.next_address++];
        Result<Fd> fd = startConnect(endpoint);
        if (!fd) {
            out.error = fd.error().message;
            continue;
        }
        out.fd = std::move(*fd);
        out.error = "cannot connect to " + endpoint.str() + " in time";
        const bool last = out.next_address == addresses.size();
        out.address_deadline = last ? Deadline::max() : Clock::now() + kAddressPatience;
        return;
    }
    out.done = true;
}

void Mesh::advance(Outgoing& out, short events) {
    if (events == 0) return;
    if (!out.greeted) {
        if (const std::string why = connectError(out.fd.get()); !why.empty()) {
            out.error =
                "cannot connect to " + table_[out.peer][out.next_address - 1].str() + ": " + why;
            return startNext(out);
        }
        const Greeting greeting =
            makeGreeting(Purpose::Control, cookie_, static_cast<std::uint32_t>(self_),
                         static_cast<std::uint32_t>(out.peer));
        // A new connection's send buffer always has room for these few bytes.
        if (Status status = sendAll(out.fd.get(), greeting.data(), greeting.size(), Clock::now());
            !status) {
            out.error = status.error().message;
            return startNext(out);
        }
        out.greeted = true;
        return;
    }
    char answer = 0;
    const ssize_t got = recv(out.fd.get(), &answer, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got == 1 && answer == kWelcome) {
        adopt(out.peer, std::move(out.fd));
        out.done = true;
        return;
    }
    out.error = "it refused the connection";
    startNext(out);
}

void Mesh::accept(std::vector<Incoming>& incoming) {
    for (;;) {
        Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!fd.valid()) return;
        setNoDelay(fd.get());
        if (incoming.size() >= kMostStrangers) {
            logRefused(incoming.front().fd.get(), "it did not introduce itself");
            incoming.erase(incoming.begin());
        }
        incoming.push_back({std::move(fd), {}, 0});
    }
}

/// True when the connection is settled: it became a peer's or was refused.
bool Mesh::advance(Incoming& in) {
    const ssize_t got =
        recv(in.fd.get(), in.greeting.data() + in.have, in.greeting.size() - in.have, MSG_DONTWAIT);
    if (got < 0) return errno != EAGAIN && errno != EINTR;
    if (got == 0) return true;
    in.have += static_cast<std::size_t>(got);
    if (in.have < in.greeting.size()) return false;
    const auto introduced = checkGreeting(in.greeting, Purpose::Control, cookie_);
    if (!introduced) {
        logRefused(in.fd.get(), "wrong cookie");
        return true;
    }
    const int from = static_cast<int>(introduced->from);
    if (introduced->to != static_cast<std::uint32_t>(self_) || !table_.contains(from) ||
        from >= self_) {
        logRefused(in.fd.get(), "it looks for another agent");
        return true;
    }
    // A peer may come before this end has been told to expect it; it is kept all the same.
    if (sendAll(in.fd.get(), &kWelcome, 1, Clock::now())) adopt(from, std::move(in.fd));
    return true;
}

void Mesh::adopt(int peer, Fd fd) {
    peers_[peer] = std::move(fd);
    begun_.erase(peer);
}

std::map<int, std::string> Mesh::connect(const std::set<int>& peers, Deadline deadline) {
    std::vector<Outgoing> outgoing;
    for (const int peer : peers) {
        if (peer <= self_ || connected(peer)) continue;
        outgoing.emplace_back().peer = peer;
        startNext(outgoing.back());
    }
    std::vector<Incoming> incoming;
    const auto complete = [&] {
        const bool made =
            std::all_of(outgoing.begin(), outgoing.end(), [](const Outgoing& o) { return o.done; });
        return made && std::all_of(peers.begin(), peers.end(),
                                   [&](int peer) { return peer > self_ || connected(peer); });
    };
    while (!complete() && Clock::now() < deadline) {
        std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
        for (const Outgoing& out : outgoing)
            entries.push_back({out.done ? -1 : out.fd.get(),
                               static_cast<short>(out.greeted ? POLLIN : POLLOUT), 0});
        for (const Incoming& in : incoming) entries.push_back({in.fd.get(), POLLIN, 0});
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (poll(entries.data(), entries.size(), static_cast<int>(std::clamp<long>(left, 0, 50))) <
                0 &&
            errno != EINTR)
            break;
        std::size_t at = 1;
        for (Outgoing& out : outgoing) {
            const short events = entries[at++].revents;
            if (out.done) continue;
            if (events != 0)
                advance(out, events);
            else if (Clock::now() > out.address_deadline)
                startNext(out);
        }
        const std::size_t known = incoming.size();
        std::vector<Incoming> waiting;
        for (std::size_t i = 0; i < known; ++i)
            if (entries[at + i].revents == 0 || !advance(incoming[i]))
                waiting.push_back(std::move(incoming[i]));
        incoming = std::move(waiting);
        if (entries[0].revents != 0) accept(incoming);
    }
    for (const Incoming& in : incoming) logRefused(in.fd.get(), "it did not introduce itself");
    std::map<int, std::string> missing;
    for (const Outgoing& out : outgoing)
        if (!connected(out.peer)) missing[out.peer] = out.error;
    for (const int peer : peers)
        if (peer < self_ && !connected(peer)) missing[peer] = "it did not connect in time";
    return missing;
}

Status Mesh::sendLine(int peer, std::string_view line, Deadline deadline) {
    const auto at = peers_.find(peer);
    if (at == peers_.end()) return Error{"not connected"};
    Status status =
        sendAll(at->second.get(), std::string(line).append("\n").data(), line.size() + 1, deadline);
    if (!status) peers_.erase(at);
    return status;
}

Result<std::string> Mesh::receiveLine(int peer, Deadline deadline) {
    const auto at = peers_.find(peer);
    if (at == peers_.end()) return Error{"not connected"};
    std::string& begun = begun_[peer];
    constexpr std::size_t kLongest = 256 * 1024;
    std::array<char, 4096> chunk;
    for (;;) {
        if (const auto end = begun.find('\n'); end != std::string::npos) {
            std::string line = begun.substr(0, end);
            begun.erase(0, end + 1);
            return line;
        }
        const ssize_t got = recv(at->second.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
        if (got > 0) {
            begun.append(chunk.data(), static_cast<std::size_t>(got));
            if (begun.size() < kLongest) continue;
        }
        const bool later = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
        if (later && waitReady(at->second.get(), POLLIN, deadline)) continue;
        if (later) return Error{"no answer in time"};
        peers_.erase(at);
        begun_.erase(peer);
        if (got > 0) return Error{"sent a line that does not end"};
        return Error{got == 0 ? "closed the connection" : std::strerror(errno)};
    }
}

std::string Mesh::ownAddressTowards(int peer) const {
    const auto at = peers_.find(peer);
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (at == peers_.end() ||
        getsockname(at->second.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
        return {};
    return numericAddress(own);
}

}  // namespace rdmatune::fabric
