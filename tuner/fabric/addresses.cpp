// Which of a machine's addresses its peers should try, and what its interfaces are.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "tuner/fabric/socket.hpp"

namespace rdmatune::fabric {
namespace {

struct InterfaceAddress {
    std::string interface;
    std::string address;
    int family = 0;
    bool loopback = false;
};

std::string numeric(const sockaddr* address) {
    char text[INET6_ADDRSTRLEN] = "";
    if (address->sa_family == AF_INET)
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
                  sizeof text);
    else if (address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
                  sizeof text);
    return text;
}

std::vector<InterfaceAddress> interfaceAddresses() {
    std::vector<InterfaceAddress> out;
    ifaddrs* raw = nullptr;
    if (getifaddrs(&raw) != 0) return out;
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(raw, freeifaddrs);
    for (const ifaddrs* at = list.get(); at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
        const int family = at->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        if (family == AF_INET6 &&
            IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6*>(at->ifa_addr)->sin6_addr))
            continue;
        out.push_back(
            {at->ifa_name, numeric(at->ifa_addr), family, (at->ifa_flags & IFF_LOOPBACK) != 0});
    }
    return out;
}

std::set<std::string> addressesOfName(const std::string& name) {
    std::set<std::string> out;
    if (name.empty()) return out;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* raw = nullptr;
    if (getaddrinfo(name.c_str(), nullptr, &hints, &raw) != 0) return out;
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(raw, freeaddrinfo);
    for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next)
        out.insert(numeric(at->ai_addr));
    return out;
}

/// Bridges and tunnels of containers and virtual machines lead to no other node.
bool isInner(const std::string& interface) {
    for (const char* prefix :
         {"docker", "virbr", "veth", "br-", "cni", "flannel", "cali", "podman", "lxc"})
        if (interface.starts_with(prefix)) return true;
    return false;
}

}  // namespace

std::vector<std::string> ownAddresses(bool loopback, const std::string& node_name) {
    std::vector<InterfaceAddress> all = interfaceAddresses();
    if (!loopback) {
        const auto real = [](const InterfaceAddress& a) { return !a.loopback; };
        if (std::any_of(all.begin(), all.end(), real))
            std::erase_if(all, [](const InterfaceAddress& a) { return a.loopback; });
    }
    const std::set<std::string> named =
        loopback ? std::set<std::string>{} : addressesOfName(node_name);
    const auto rank = [&](const InterfaceAddress& a) {
        const bool wanted = loopback ? a.loopback : named.contains(a.address);
        return (wanted ? 0 : 4) + (isInner(a.interface) ? 2 : 0) + (a.family == AF_INET ? 0 : 1);
    };
    std::stable_sort(
        all.begin(), all.end(),
        [&](const InterfaceAddress& a, const InterfaceAddress& b) { return rank(a) < rank(b); });
    constexpr std::size_t kMost = 4;
    std::vector<std::string> out;
    for (const InterfaceAddress& a : all)
        if (out.size() < kMost) out.push_back(a.address);
    return out;
}

std::string interfaceOf(const std::string& address) {
    for (const InterfaceAddress& a : interfaceAddresses())
        if (a.address == address) return a.interface;
    return {};
}

}  // namespace rdmatune::fabric
