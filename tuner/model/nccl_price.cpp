#include "tuner/model/nccl_price.hpp"

namespace rdmatune::model {
namespace {

constexpr int kTree = static_cast<int>(Algorithm::Tree);
constexpr int kRing = static_cast<int>(Algorithm::Ring);

/// NCCL builds its rings from links in steps that leave 4 % of the rate unused (24 of 25 GB/s, 48
/// of 50).
constexpr std::uint64_t kUsableShare = 960;  // 1/1000

/// What a ring carries inside one node, 10^6 bytes/s, by generation: the NVLinks of one GPU, as
/// NCCL counts them.
constexpr std::uint64_t kNvlinkMbps[] = {120'000, 240'000, 400'000, 800'000};
constexpr std::uint64_t kPciMbps = 15'000;

/// Limits of NCCL's kernels, 10^6 bytes/s: [generation][two nodes, more]; of one channel except for
/// LL, which is limited as a whole and, across nodes, by the maker of the CPU (Intel, AMD).
constexpr std::uint64_t kLlMax[2][2] = {{39'000, 20'400}, {22'500, 19'000}};
constexpr std::uint64_t kRingLl128[][2] = {
    {20'000, 20'000}, {20'000, 20'000}, {36'700, 36'700}, {34'600, 73'400}};
constexpr std::uint64_t kTreeLl128[][2] = {
    {20'000, 20'000}, {20'000, 20'000}, {36'700, 29'000}, {31'670, 20'000}};
constexpr std::uint64_t kTreeChannel[][2] = {
    {18'500, 10'000}, {23'600, 17'800}, {41'400, 36'000}, {42'800, 24'000}};

std::uint64_t least(std::uint64_t a, std::uint64_t b) {
    return a < b ? a : b;
}

std::uint32_t channels(const Shape& shape) {
    if (!shape.nvlink) return 2;
    return shape.rails > 4 ? shape.rails : 4;
}

std::uint64_t intraMbps(const Shape& shape) {
    if (shape.intra_mbps != 0) return shape.intra_mbps;
    return shape.nvlink ? kNvlinkMbps[static_cast<int>(shape.gpu)] : kPciMbps;
}

/// Bandwidth over the bus as NCCL's formula has it for tree or ring, 10^6 bytes/s.
std::uint64_t busMbps(const Shape& shape, Algorithm algorithm, Protocol protocol) {
    const int gpu = static_cast<int>(shape.gpu);
    const int scale = shape.size.nodes <= 2 ? 0 : 1;
    const std::uint64_t net = std::uint64_t{shape.rail_mbps} * shape.rails * kUsableShare / 1000;
    const std::uint64_t intra = intraMbps(shape);
    const std::uint64_t ll_max = kLlMax[shape.amd_host ? 1 : 0][scale];
    const std::uint64_t graph = least(net, intra);
    if (algorithm == Algorithm::Ring) {
        if (protocol == Protocol::LL) return least(ll_max, graph / 2);
        if (protocol == Protocol::LL128)
            return least(graph * 92 / 100, channels(shape) * kRingLl128[gpu][scale]);
        return graph;
    }
    // With two nodes NCCL takes the inside of a node for what bounds a tree.
    const std::uint64_t whole = shape.size.nodes <= 2 && shape.nvlink ? intra : graph;
    std::uint64_t bus = least(whole * 92 / 100, channels(shape) * kTreeChannel[gpu][scale]);
    if (protocol == Protocol::LL) bus = least(bus * 10 / 38, ll_max);
    if (protocol == Protocol::LL128)
        bus = least(bus * 120 / 128, channels(shape) * kTreeLl128[gpu][scale]);
    // Where all of a node's GPUs have a rail of their own behind one NVSwitch, NCCL builds the
    // plain tree pattern and takes 15 % off.
    const bool plain_tree =
        shape.gpu >= Gpu::Hopper && shape.nvlink && shape.rails >= kPlainTreeRails;
    return plain_tree ? bus * kPlainTree / 1000 : bus;
}

}  // namespace

FamilyPrices ncclPrices(const Shape& shape, const LatencyTable& table, Collective what,
                        std::uint64_t bytes) {
    FamilyPrices out;
    const std::uint64_t ranks = shape.size.ranks;
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < kProtocols; ++p) {
            out.price[a][p] = -1;
            const auto algorithm = static_cast<Algorithm>(a);
            const auto protocol = static_cast<Protocol>(p);
            const bool gather = what == Collective::AllGather || what == Collective::ReduceScatter;
            if ((what != Collective::AllReduce && !gather) || (gather && a == kTree)) continue;
            if (protocol == Protocol::LL128 && !shape.nvlink) continue;
            const std::uint64_t bus = busMbps(shape, algorithm, protocol);
            if (bus == 0 || ranks < 2 || shape.size.nodes == 0) continue;
            // From bus to message: a ring moves each byte (n-1)/n times for each passage, a tree
            // twice.
            std::uint64_t rate = rateOf(bus);
            if (a == kRing)
                rate = (rate - rate / ranks) * (gather ? 1 : 2);
            else
                rate = rate * 2 * 10 / treeShare(p, bytes == 0 ? 0 : 63 - __builtin_clzll(bytes));
            out.price[a][p] = ncclLatency(table, algorithm, protocol, what, shape.size,
                                          bytes >= largeFrom(shape.size.ranks)) +
                              timeOf(rate, bytes);
        }
    return out;
}

FamilyPrices measuredPrices(const Pricing& pricing, const FamilyPrices& nccl, Collective what,
                            std::uint64_t bytes) {
    FamilyPrices out;
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < kProtocols; ++p) {
            const Ticks price = nccl.price[a][p];
            out.price[a][p] = price;
            if (price >= 0)
                out.price[a][p] += networkShare(pricing, static_cast<Algorithm>(a),
                                                static_cast<Protocol>(p), what, bytes, 1, price);
        }
    return out;
}

FamilyPrices modelPrices(const Pricing& pricing, const Shape& shape, Collective what,
                         std::uint64_t bytes) {
    FamilyPrices out;
    Shape kernels = shape;
    kernels.rail_mbps = 4'000'000;  // no network binds: what is left is NVLink and the kernels
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < kProtocols; ++p) {
            const auto algorithm = static_cast<Algorithm>(a);
            const auto protocol = static_cast<Protocol>(p);
            Way way;
            out.price[a][p] = -1;
            if (!wayOf(algorithm, what, way) || (protocol == Protocol::LL128 && !shape.nvlink))
                continue;
            const Rate rate = rateOf(busMbps(kernels, algorithm, protocol));
            // From bus to message: a ring moves each byte (n-1)/n times for each passage, a tree
            // twice.
            const Rate whole =
                a == kTree ? 2 * rate
                           : (rate - rate / shape.size.ranks) * (way == Way::RingGather ? 1 : 2);
            const Operation operation{algorithm, protocol, what, shape.size, shape.rails, bytes};
            out.price[a][p] =
                timeOn(pricing.measured[a], pricing.latency, operation, timeOf(whole, bytes));
        }
    return out;
}

Choice cheapest(const FamilyPrices& prices) {
    Choice choice;
    Ticks best = 0;
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < kProtocols; ++p) {
            const Ticks price = prices.price[a][p];
            if (price < 0 || (choice.algorithm >= 0 && price >= best)) continue;
            best = price;
            choice = {static_cast<std::int8_t>(a), static_cast<std::int8_t>(p)};
        }
    return choice;
}

void asTable(const FamilyPrices& prices, float (&table)[2][kProtocols]) {
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < kProtocols; ++p)
            table[a][p] = prices.price[a][p] < 0 ? -1.0F : usFromTicks(prices.price[a][p]);
}

}  // namespace rdmatune::model
