// Small Nodes by hand, for tests: NodeBuilder().gpu(...).hca(...).near(...).build().
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/topology/node.hpp"

namespace rdmatune::testing {

/// Builds a Node with chosen distances. GPUs get PCI addresses 0000:10:00.0, 0000:11:00.0, ...;
/// HCAs 0000:80:00.0, ...; every pair is SYS apart until near() says otherwise.
class NodeBuilder {
  public:
    /// `count` GPUs near the CPUs `cpus` of NUMA node `numa`.
    NodeBuilder& gpus(int count, const std::string& cpus = "", int numa = -1) {
        for (int i = 0; i < count; ++i) {
            Gpu gpu;
            gpu.index = static_cast<int>(node_.gpus.size());
            gpu.pci = PciAddress{0, static_cast<std::uint8_t>(0x10 + gpu.index), 0, 0};
            gpu.minor = gpu.index;
            gpu.uuid = "GPU-0000000" + std::to_string(gpu.index) + "-1111-2222-3333-444444444444";
            gpu.vendor = "nvidia";
            gpu.numa = numa;
            gpu.cpus = *CpuSet::parse(cpus);
            node_.gpus.push_back(gpu);
        }
        return *this;
    }

    /// One active InfiniBand port of 400 Gbit/s; change it through last().
    NodeBuilder& hca(const std::string& name, int port = 1) {
        Hca hca;
        hca.name = name;
        hca.port = port;
        const bool second_port = !node_.hcas.empty() && node_.hcas.back().name == name;
        if (!second_port) ++functions_;
        hca.pci = PciAddress{0, static_cast<std::uint8_t>(0x7f + functions_), 0, 0};
        hca.link_layer = LinkLayer::InfiniBand;
        hca.state = PortState::Active;
        hca.rate_gbps = 400;
        hca.gids_known = true;
        hca.gids = {{0, "fe80:0000:0000:0000:0002:c903:0000:00" + twoDigits(node_.hcas.size()),
                     GidType::InfiniBand, ""}};
        node_.hcas.push_back(hca);
        return *this;
    }

    /// One active RoCE port of 400 Gbit/s with an IPv4 address 10.`net`.0.x.
    NodeBuilder& roce(const std::string& name, int net = 1) {
        hca(name);
        Hca& it = last();
        it.link_layer = LinkLayer::Ethernet;
        const std::string host = twoDigits(node_.hcas.size());
        it.gids = {{0, "fe80:0000:0000:0000:0202:c9ff:fe00:00" + host, GidType::RoceV1, "eth0"},
                   {1, "fe80:0000:0000:0000:0202:c9ff:fe00:00" + host, GidType::RoceV2, "eth0"},
                   {2, ipv4(net, host), GidType::RoceV1, "eth0"},
                   {3, ipv4(net, host), GidType::RoceV2, "eth0"}};
        return *this;
    }

    /// The HCA added last.
    Hca& last() { return node_.hcas.back(); }
    Gpu& gpu(int index) { return node_.gpus[static_cast<std::size_t>(index)]; }

    NodeBuilder& numa(int os_index, const std::string& cpus, int package = -1) {
        node_.numa.push_back({os_index, package < 0 ? os_index : package, *CpuSet::parse(cpus)});
        node_.cpus = node_.cpus | node_.numa.back().cpus;
        return *this;
    }

    NodeBuilder& cpus(const std::string& cpus) {
        node_.cpus = *CpuSet::parse(cpus);
        return *this;
    }

    /// All pairs from now on that near() does not name.
    NodeBuilder& others(Distance distance) {
        far_ = distance;
        return *this;
    }

    NodeBuilder& near(int gpu, int hca, Distance distance) {
        near_.push_back({gpu, hca, distance});
        return *this;
    }

    [[nodiscard]] Node build() const {
        Node out = node_;
        out.distance.assign(out.gpus.size(), std::vector<Distance>(out.hcas.size(), far_));
        for (const auto& [gpu, hca, distance] : near_)
            out.distance[static_cast<std::size_t>(gpu)][static_cast<std::size_t>(hca)] = distance;
        return out;
    }

  private:
    struct Near {
        int gpu, hca;
        Distance distance;
    };

    static std::string twoDigits(std::size_t n) {
        std::string out = std::to_string(n % 100);
        return out.size() < 2 ? "0" + out : out;
    }
    static std::string ipv4(int net, const std::string& host) {
        return "0000:0000:0000:0000:0000:ffff:0a" + twoDigits(static_cast<std::size_t>(net)) +
               ":00" + host;
    }

    Node node_;
    int functions_ = 0;
    std::vector<Near> near_;
    Distance far_ = Distance::Sys;
};

/// 8 GPUs and 8 HCAs named mlx5_0 to mlx5_7 on two sockets, GPU i beside HCA i.
inline Node dgxLike() {
    NodeBuilder builder;
    builder.numa(0, "0-15,32-47").numa(1, "16-31,48-63");
    builder.gpus(4, "0-15,32-47", 0).gpus(4, "16-31,48-63", 1);
    for (int i = 0; i < 8; ++i) {
        builder.hca("mlx5_" + std::to_string(i));
        builder.last().numa = i / 4;
    }
    for (int g = 0; g < 8; ++g)
        for (int h = 0; h < 8; ++h)
            if (g / 4 == h / 4) builder.near(g, h, g == h ? Distance::Pix : Distance::Node);
    return builder.build();
}

}  // namespace rdmatune::testing
