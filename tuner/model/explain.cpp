#include "tuner/model/explain.hpp"

#include <cstdio>

namespace rdmatune::model {
namespace {

/// Hundredths as "12.34", without floating point: the decimal point must not depend on the locale.
struct Decimal {
    char text[24];
    Decimal(std::uint64_t hundredths, int digits) {
        const unsigned long long whole = hundredths / 100;
        const auto rest = static_cast<unsigned>(hundredths % 100);
        if (digits == 2)
            std::snprintf(text, sizeof text, "%llu.%02u", whole, rest);
        else
            std::snprintf(text, sizeof text, "%llu.%u", whole, rest / 10);
    }
};

Decimal microseconds(Ticks ticks, int digits) {
    return {static_cast<std::uint64_t>(ticks < 0 ? 0 : ticks) * 100 / kTicksPerUs, digits};
}

/// GB/s of a rate.
Decimal bandwidth(Rate rate) {
    return {(std::uint64_t{1} << 42) / rate / 10, 1};
}

/// The family's cheapest with one algorithm; -1: none.
int bestProtocol(const FamilyPrices& prices, int algorithm) {
    int best = -1;
    for (int p = 0; p < kProtocols; ++p) {
        const Ticks price = prices.price[algorithm][p];
        if (price >= 0 && (best < 0 || price < prices.price[algorithm][best])) best = p;
    }
    return best;
}

void formatPattern(const Network& network, const Network& assumed, char (&text)[64]) {
    const Decimal alpha = microseconds(network.alpha, 2);
    if (assumed.rate == 0)
        std::snprintf(text, sizeof text, "%s us", alpha.text);
    else
        std::snprintf(text, sizeof text, "%s us and %s GB/s", alpha.text,
                      bandwidth(network.rate).text);
}

void formatWay(const FamilyPrices& prices, int algorithm, char (&text)[64]) {
    const int p = bestProtocol(prices, algorithm);
    if (p < 0) {
        std::snprintf(text, sizeof text, "%-10s %12s   ", "", "");
        return;
    }
    char name[24];
    std::snprintf(name, sizeof name, "%s/%s", kAlgorithmNames[algorithm], kProtocolNames[p]);
    std::snprintf(text, sizeof text, "%-11s %11s us", name,
                  microseconds(prices.price[algorithm][p], 1).text);
}

void formatChoice(Choice choice, char (&text)[24]) {
    if (choice.algorithm < 0)
        std::snprintf(text, sizeof text, "none");
    else
        std::snprintf(text, sizeof text, "%s/%s", kAlgorithmNames[choice.algorithm],
                      kProtocolNames[choice.protocol]);
}

bool isRing(const Pricing& pricing, const Shape& shape, Collective what, std::uint64_t bytes,
            bool measured) {
    const Explained row = explain(pricing, shape, what, bytes);
    const Choice choice = measured ? row.choice : row.nccl_choice;
    return choice.algorithm == static_cast<int>(Algorithm::Ring);
}

}  // namespace

Explained explain(const Pricing& pricing, const Shape& shape, Collective what,
                  std::uint64_t bytes) {
    Explained row;
    row.bytes = bytes;
    row.nccl = ncclPrices(shape, pricing.latency, what, bytes);
    row.nccl_choice = cheapest(row.nccl);
    // NCCL passes its prices with what was written into its constants.
    LatencyTable latency = pricing.latency;
    for (auto& algorithm : latency.inter)
        for (Ticks& step : algorithm) step += pricing.written;
    float table[2][kProtocols];
    asTable(ncclPrices(shape, latency, what, bytes), table);
    reprice(pricing, what, bytes, 1, &table[0][0], 2, kProtocols);
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < kProtocols; ++p)
            row.priced.price[a][p] = table[a][p] < 0 ? -1 : ticksFromUs(table[a][p]);
    row.choice = cheapest(&table[0][0], 2, kProtocols);
    return row;
}

std::uint64_t ringFrom(const Pricing& pricing, const Shape& shape, Collective what, bool measured) {
    // From above, so that an island of ring among smaller sizes does not count.
    std::uint64_t ring = kLargest;
    if (!isRing(pricing, shape, what, ring, measured)) return 0;
    std::uint64_t tree = 0;
    while (ring > kSmallest) {
        if (!isRing(pricing, shape, what, ring / 2, measured)) {
            tree = ring / 2;
            break;
        }
        ring /= 2;
    }
    if (tree == 0) return ring;
    for (const std::uint64_t step = tree / 16; ring - tree > step;) {
        const std::uint64_t middle = tree + (ring - tree) / 2;
        (isRing(pricing, shape, what, middle, measured) ? ring : tree) = middle;
    }
    return ring;
}

Shape shapeOf(const Pricing& pricing) {
    Shape shape;
    shape.size = pricing.size;
    shape.rails = pricing.rails;
    // Without a link rate the bandwidths do not matter: both prices have the same.
    shape.rail_mbps = pricing.rail_mbps != 0 ? pricing.rail_mbps : 25'000;
    return shape;
}

void formatNetwork(const Pricing& pricing, char (&line)[kLineMax]) {
    char ring[64];
    char tree[64];
    char assumed[64];
    formatPattern(pricing.measured[static_cast<int>(Algorithm::Ring)], pricing.assumed, ring);
    formatPattern(pricing.measured[static_cast<int>(Algorithm::Tree)], pricing.assumed, tree);
    formatPattern(pricing.assumed, pricing.assumed, assumed);
    std::snprintf(line, sizeof line,
                  "%u ranks on %u nodes, %u rail%s: ring %s, tree %s; NCCL assumes %s",
                  pricing.size.ranks, pricing.size.nodes, pricing.rails,
                  pricing.rails == 1 ? "" : "s", ring, tree, assumed);
}

void formatRow(const Explained& row, Collective what, char (&line)[kLineMax]) {
    char size[24];
    char tree[64];
    char ring[64];
    char choice[24];
    char nccl[24];
    formatSize(row.bytes, size);
    formatWay(row.priced, static_cast<int>(Algorithm::Tree), tree);
    formatWay(row.priced, static_cast<int>(Algorithm::Ring), ring);
    formatChoice(row.choice, choice);
    formatChoice(row.nccl_choice, nccl);
    std::snprintf(line, sizeof line, "%-13s %6s   %s   %s   %-11s (NCCL alone: %s)%s",
                  kCollectiveNames[static_cast<int>(what)], size, tree, ring, choice, nccl,
                  row.choice == row.nccl_choice ? "" : " *");
}

void formatCrossing(std::uint64_t measured, std::uint64_t nccl, Collective what,
                    char (&line)[kLineMax]) {
    const auto phrase = [](std::uint64_t from, char(&text)[40]) {
        char size[24];
        formatSize(from, size);
        if (from == 0)
            std::snprintf(text, sizeof text, "tree at every size");
        else if (from <= kSmallest)
            std::snprintf(text, sizeof text, "ring at every size");
        else
            std::snprintf(text, sizeof text, "ring from %s on", size);
    };
    char ours[40];
    char theirs[40];
    phrase(measured, ours);
    phrase(nccl, theirs);
    std::snprintf(line, sizeof line, "%s: %s (NCCL alone: %s)",
                  kCollectiveNames[static_cast<int>(what)], ours, theirs);
}

void formatSize(std::uint64_t bytes, char (&text)[24]) {
    static constexpr char kUnits[] = {'K', 'M', 'G', 'T'};
    int unit = -1;
    std::uint64_t tenths = bytes * 10;
    while (tenths >= 10240 && unit < 3) {
        tenths /= 1024;
        ++unit;
    }
    const auto whole = static_cast<unsigned long long>(tenths / 10);
    const auto rest = static_cast<unsigned>(tenths % 10);
    if (unit < 0)
        std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(bytes));
    else if (rest == 0 || whole >= 100)
        std::snprintf(text, sizeof text, "%llu%c", whole, kUnits[unit]);
    else
        std::snprintf(text, sizeof text, "%llu.%u%c", whole, rest, kUnits[unit]);
}

}  // namespace rdmatune::model
