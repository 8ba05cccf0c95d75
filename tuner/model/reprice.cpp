// Re-pricing a whole table, and who may win.
#include "tuner/model/pricing.hpp"

namespace rdmatune::model {
namespace {

constexpr int kAlgorithmsMax = 16;
constexpr int kProtocolsMax = 8;
constexpr int kFamily = 2;  // tree and ring are the first two rows
constexpr Ticks kNone = -1;

/// The table in ticks.
struct Prices {
    Ticks given[kAlgorithmsMax][kProtocolsMax];  ///< as NCCL passed it; kNone: not available
    Ticks now[kAlgorithmsMax][kProtocolsMax];    ///< what the choice shall be made by
    int algorithms = 0;
    int protocols = 0;
};

/// One call, as its steps below see it.
struct Call {
    const Pricing& pricing;
    Collective what;
    std::uint64_t bytes;
    int pipe_operations;
};

bool inFamily(int algorithm, int protocol) {
    return algorithm < kFamily && protocol < kProtocols;
}

/// False when a value makes no sense. Zero is nonsense too: another tuner's way to force an entry.
bool readTable(const float* table, Prices& prices) {
    constexpr float kCostMax = 1e12F;
    for (int a = 0; a < prices.algorithms; ++a)
        for (int p = 0; p < prices.protocols; ++p) {
            const float us = table[a * prices.protocols + p];
            if (us < 0) {
                prices.given[a][p] = prices.now[a][p] = kNone;
                continue;
            }
            if (!(us > 0 && us < kCostMax)) return false;  // so that a NaN is refused too
            prices.given[a][p] = prices.now[a][p] = ticksFromUs(us);
        }
    return true;
}

/// NCCL's price before anything was written into its constants.
Ticks ncclPrice(const Call& call, int a, int p, Ticks given) {
    const Ticks written =
        writtenShare(call.pricing, static_cast<Algorithm>(a), static_cast<Protocol>(p), call.what,
                     call.bytes, call.pipe_operations);
    return given > written ? given - written : 1;
}

/// Prices ring and tree with the measured network.
void priceFamily(const Call& call, Prices& prices) {
    for (int a = 0; a < kFamily; ++a)
        for (int p = 0; p < kProtocols; ++p) {
            const Ticks given = prices.given[a][p];
            if (given == kNone) continue;
            const Ticks nccl = ncclPrice(call, a, p, given);
            const Ticks price = nccl + networkShare(call.pricing, static_cast<Algorithm>(a),
                                                    static_cast<Protocol>(p), call.what, call.bytes,
                                                    call.pipe_operations, nccl);
            prices.now[a][p] = price < 1 ? 1 : price;
        }
}

/// The family's cheapest, leaving out one protocol (or none: -1).
Ticks familyBest(const Prices& prices, int left_out) {
    Ticks best = kNone;
    for (int a = 0; a < kFamily; ++a)
        for (int p = 0; p < kProtocols; ++p) {
            const Ticks price = prices.now[a][p];
            if (p != left_out && price != kNone && (best == kNone || price < best)) best = price;
        }
    return best;
}

/// The protocol that NCCL itself would have taken within the family; -1: none.
int ncclProtocol(const Call& call, const Prices& prices) {
    Ticks best = kNone;
    int protocol = -1;
    for (int a = 0; a < kFamily; ++a)
        for (int p = 0; p < kProtocols; ++p) {
            if (prices.given[a][p] == kNone) continue;
            const Ticks price = ncclPrice(call, a, p, prices.given[a][p]);
            if (best == kNone || price < best) {
                best = price;
                protocol = p;
            }
        }
    return protocol;
}

/// LL and LL128 are never newly chosen for large messages, whatever the prices say: the public
/// reports of tuners that did so are of losses of 2x to 39x.
void guardProtocol(const Call& call, Prices& prices, Protocol protocol) {
    const int p = static_cast<int>(protocol);
    const bool ll = protocol == Protocol::LL;
    const std::uint64_t largest = ll ? kLlLargest : kLl128Largest;
    const std::uint64_t pieces = call.pricing.size.ranks * (ll ? kLlRingPiece : kLl128RingPiece);
    const std::uint64_t limit[kFamily] = {largest, pieces > largest ? pieces : largest};
    if (call.bytes <= limit[0] || ncclProtocol(call, prices) == p) return;
    const Ticks floor = familyBest(prices, p);
    if (floor == kNone) return;
    for (int a = 0; a < kFamily; ++a)
        if (call.bytes > limit[a] && prices.now[a][p] != kNone && prices.now[a][p] <= floor)
            prices.now[a][p] = floor + marginOf(floor);
}

/// What an algorithm outside the family would cost if the measured network were charged to it as
/// well. Only its rank among ring and tree is decided by this; its entry keeps NCCL's price.
Ticks shadowPrice(const Call& call, int a, Ticks price) {
    if (a >= kAlgorithms) return price;
    const Ticks shadow =
        price + shadowShare(call.pricing, static_cast<Algorithm>(a), call.what, call.bytes, price);
    return shadow < 1 ? 1 : shadow;
}

/// Ring and tree cross the network that was measured, and so do NVLS tree, CollNet and PAT, whose
/// entries keep NCCL's price. So that nobody wins for not having been re-priced, who wins is
/// decided with the network charged to everybody, and ring and tree are moved together as far as
/// NCCL needs to see it.
void placeFamily(const Call& call, Prices& prices) {
    const Ticks family = familyBest(prices, -1);
    Ticks others = kNone;
    Ticks shadow = kNone;
    for (int a = 0; a < prices.algorithms; ++a)
        for (int p = 0; p < prices.protocols; ++p) {
            const Ticks price = prices.given[a][p];
            if (inFamily(a, p) || price == kNone) continue;
            const Ticks charged = shadowPrice(call, a, price);
            if (others == kNone || price < others) others = price;
            if (shadow == kNone || charged < shadow) shadow = charged;
        }
    if (family == kNone || others == kNone) return;
    Ticks shift = 0;
    if (family <= shadow && family >= others) shift = others - marginOf(others) - family;
    if (family > shadow && family <= others) shift = others + marginOf(others) - family;
    if (shift == 0) return;
    for (int a = 0; a < kFamily; ++a)
        for (int p = 0; p < kProtocols; ++p)
            if (prices.now[a][p] != kNone) {
                const Ticks moved = prices.now[a][p] + shift;
                prices.now[a][p] = moved < 1 ? 1 : moved;
            }
}

/// The cheapest entry that the rule allows becomes the cheapest of all. A rule that nothing
/// available fits is passed over.
void applyRule(const Rule& rule, Prices& prices) {
    int best_a = -1;
    int best_p = -1;
    for (int a = 0; a < prices.algorithms; ++a)
        for (int p = 0; p < prices.protocols; ++p) {
            const Ticks price = prices.now[a][p];
            if (price == kNone) continue;
            if ((rule.algorithm != kAny && rule.algorithm != a) ||
                (rule.protocol != kAny && rule.protocol != p))
                continue;
            if (best_a < 0 || price < prices.now[best_a][best_p]) {
                best_a = a;
                best_p = p;
            }
        }
    if (best_a < 0) return;
    // Strictly below all others, whatever their order in the table.
    Ticks second = kNone;
    for (int a = 0; a < prices.algorithms; ++a)
        for (int p = 0; p < prices.protocols; ++p) {
            const Ticks price = prices.now[a][p];
            if (price == kNone || (a == best_a && p == best_p)) continue;
            if (second == kNone || price < second) second = price;
        }
    Ticks& pinned = prices.now[best_a][best_p];
    if (second == kNone || pinned < second) return;
    pinned = second > marginOf(second) ? second - marginOf(second) : 1;
}

}  // namespace

Choice cheapest(const float* table, int algorithms, int protocols) {
    Choice choice;
    float least = 0;
    for (int a = 0; a < algorithms; ++a)
        for (int p = 0; p < protocols; ++p) {
            const float us = table[a * protocols + p];
            if (us >= 0 && (choice.algorithm < 0 || us < least)) {
                least = us;
                choice = {static_cast<std::int8_t>(a), static_cast<std::int8_t>(p)};
            }
        }
    return choice;
}

bool reprice(const Pricing& pricing, Collective what, std::uint64_t bytes, int pipe_operations,
             float* table, int algorithms, int protocols) {
    constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 48;
    if (table == nullptr || bytes == 0 || bytes > kBytesMax || algorithms < kFamily ||
        algorithms > kAlgorithmsMax || protocols < kProtocols || protocols > kProtocolsMax ||
        static_cast<int>(what) >= kCollectives)
        return false;
    const Rule* const rule = pricing.rules.find(what, bytes, pricing.size.nodes);
    Prices prices;
    prices.algorithms = algorithms;
    prices.protocols = protocols;
    if (!readTable(table, prices)) return false;
    const Call call{pricing, what, bytes, pipe_operations};
    if (rule != nullptr && rule->algorithm == kLeaveToNccl) {
        for (int a = 0; a < kFamily; ++a)
            for (int p = 0; p < kProtocols; ++p)
                if (prices.given[a][p] != kNone)
                    prices.now[a][p] = ncclPrice(call, a, p, prices.given[a][p]);
    } else if (pricing.corrects) {
        priceFamily(call, prices);
        guardProtocol(call, prices, Protocol::LL);
        guardProtocol(call, prices, Protocol::LL128);
        placeFamily(call, prices);
    }
    if (rule != nullptr && rule->algorithm != kLeaveToNccl) applyRule(*rule, prices);
    for (int a = 0; a < algorithms; ++a)
        for (int p = 0; p < protocols; ++p)
            if (prices.now[a][p] != prices.given[a][p])
                table[a * protocols + p] = usFromTicks(prices.now[a][p]);
    return true;
}

}  // namespace rdmatune::model
