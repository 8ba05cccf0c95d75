// Sockets, addresses as text, and calls that end by a deadline.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/fd.hpp"
#include "tuner/base/result.hpp"
#include "tuner/fabric/transport.hpp"

namespace rdmatune::fabric {

/// A numeric IP address and a port. Text: "10.0.0.3:4711", "[fd00::3]:4711".
struct Endpoint {
    std::string address;
    std::uint16_t port = 0;
    bool operator==(const Endpoint&) const = default;

    [[nodiscard]] std::string str() const;
    [[nodiscard]] static std::optional<Endpoint> parse(std::string_view text);
};

/// Name or numbers of the other end, for messages.
[[nodiscard]] std::string peerName(int fd);

/// A non-blocking listening socket on a port that the kernel chooses; `address` empty: on every
/// address of both families.
[[nodiscard]] Result<Fd> listenOn(const std::string& address, std::uint16_t& port);

/// A non-blocking socket with a connection under way; finished when it is writable and
/// connectError() is empty.
[[nodiscard]] Result<Fd> startConnect(const Endpoint& to);
/// Empty: connected. Otherwise the reason.
[[nodiscard]] std::string connectError(int fd);

/// Small messages leave at once.
void setNoDelay(int fd);

/// Waits until fd is ready for `events` (POLLIN, POLLOUT). False: the deadline came first.
[[nodiscard]] bool waitReady(int fd, short events, Deadline deadline);

/// Everything, or an error that names the peer ("closed the connection", "no answer in time").
[[nodiscard]] Status sendAll(int fd, const void* data, std::size_t size, Deadline deadline);
[[nodiscard]] Status receiveAll(int fd, void* data, std::size_t size, Deadline deadline);

/// Equal, in a time that does not depend on where they differ.
[[nodiscard]] bool equalSecret(std::string_view a, std::string_view b);

/// Addresses of this machine that others may reach it by, the likeliest first: what its own name
/// resolves to, then real interfaces before bridges of containers, IPv4 before IPv6. Only
/// interfaces that are up; loopback only when asked for or when there is nothing else.
[[nodiscard]] std::vector<std::string> ownAddresses(bool loopback, const std::string& node_name);

/// Interface that holds the address, or empty.
[[nodiscard]] std::string interfaceOf(const std::string& address);

}  // namespace rdmatune::fabric
