// Re-pricing a whole table, and who may win.
#include <cstring>

#include "tuner/model/pricing.hpp"

namespace rdmatune::model {
namespace {

constexpr int kFamily = 2;  // tree and ring are the first two rows
constexpr Ticks kNone = -1;

/// One call, as its steps below see it.
struct Call {
    const Pricing& pricing;
    Collective what;
    std::uint64_t bytes;
    bool large;               // NCCL's surcharge for ring with Simple
    std::int64_t operations;  // that NCCL has grouped
    Position position;
};

Call callOf(const Pricing& pricing, Collective what, std::uint64_t bytes, int pipe_operations) {
    const std::int64_t operations = pipe_operations < 1      ? 1
                                    : pipe_operations > 1024 ? 1024
                                                             : pipe_operations;
    return {pricing, what, bytes, isLarge(pricing.size, bytes), operations, positionOf(bytes)};
}

/// How often NCCL counts a latency: a ring's for each operation, the others' for each eight.
std::int64_t latencyCount(const Call& call, Algorithm algorithm) {
    return algorithm == Algorithm::Ring ? call.operations : (call.operations + 7) / 8;
}

/// Within the powers of two no product exceeds 2^62; beyond the last one it may.
Ticks between(Ticks a, Ticks b, std::uint64_t fraction) {
    if (fraction <= 1U << 16) return a + (b - a) * static_cast<Ticks>(fraction) / 65536;
    return a + static_cast<Ticks>(
                   static_cast<SignedWide>(b - a) * static_cast<SignedWide>(fraction) >> 16);
}

/// What the network adds: the closed form with the measured network less that with the assumed one.
Ticks shareOf(const Call& call, Algorithm algorithm, Protocol protocol, Way way, Ticks price) {
    const int w = static_cast<int>(way);
    const int p = static_cast<int>(protocol);
    const Pricing& pricing = call.pricing;
    // NCCL's price has a share for bandwidth. Where that is more than the network needs, something
    // else binds (NVLink, a kernel), and a slower network is felt only beyond it.
    const Ticks latency = pricing.nccl_latency[w][p][call.large ? 1 : 0];
    const Ticks bound = price > latency ? price - latency : 0;
    const Curve::Point& low = pricing.curve[w][p].at[call.position.index];
    const Curve::Point& high = pricing.curve[w][p].at[call.position.index + 1];
    const std::uint64_t fraction = call.position.fraction;
    Ticks share = 1 << 16;
    Ticks fixed[2] = {0, 0};
    if (way == Way::TreeAllReduce) {  // a ring has neither
        share = between(low.share, high.share, fraction);
        if (share > 1 << 16) share = 1 << 16;
        fixed[0] = between(low.fixed[0], high.fixed[0], fraction);
        fixed[1] = between(low.fixed[1], high.fixed[1], fraction);
    }
    Ticks time[2];
    for (int which = 0; which < 2; ++which) {
        // At most 2^44 ticks per 2^32 bytes and 2^48 bytes: below 2^60.
        const auto network = static_cast<Ticks>(
            static_cast<Wide>(pricing.busy_rate[w][p][which]) * call.bytes >> 32);
        const Ticks busy = network > bound ? network : bound;
        const auto unhidden =
            static_cast<Ticks>(static_cast<Wide>(busy) * static_cast<Wide>(share) >> 16);
        const Ticks least = between(low.least[which], high.least[which], fraction);
        time[which] = fixed[which] + (unhidden > least ? unhidden : least);
    }
    Ticks added = time[1] - time[0];
    if (call.operations > 1)
        added += (latencyCount(call, algorithm) - 1) * pricing.nccl_steps[w] *
                 (pricing.measured[static_cast<int>(algorithm)].alpha - pricing.assumed.alpha);
    return added;
}

/// What `pricing.written` has added to a price of NCCL's.
Ticks writtenOf(const Call& call, Algorithm algorithm, Protocol protocol, Way way) {
    if (call.pricing.written == 0) return 0;
    const Ticks once = call.pricing.nccl_steps[static_cast<int>(way)] * call.pricing.written;
    const bool surcharge = call.large && hasSurcharge(algorithm, protocol, call.what);
    return latencyCount(call, algorithm) * (surcharge ? withSurcharge(once) : once);
}

/// For an algorithm that NCCL alone prices (NVLS tree, CollNet, PAT): the least that the measured
/// network could add to it.
Ticks shadowShare(const Call& call, Algorithm algorithm, Ticks price) {
    const Pricing& pricing = call.pricing;
    constexpr int kTree = static_cast<int>(Algorithm::Tree);
    const Network& measured = pricing.measured[kTree];
    const std::int64_t passages = call.what == Collective::AllReduce ? 2 : 1;
    const bool tree_like = algorithm == Algorithm::NvlsTree || algorithm == Algorithm::Pat;
    // CollNet and NVLS go up into the switches and down: two passages of one step at most.
    const std::int64_t steps = tree_like ? passages * log2Floor(pricing.size.nodes) : passages;
    const bool twice = algorithm == Algorithm::NvlsTree && pricing.size.nodes > 2;
    const std::uint64_t leaving = twice ? 2 * call.bytes : call.bytes;
    const Ticks before = timeOf(pricing.assumed.rate, leaving);
    const Ticks after = timeOf(measured.rate, leaving);
    const Ticks bound = price > before ? price : before;
    const Ticks slower = after > bound ? after - bound : 0;
    return steps * (measured.alpha - pricing.assumed.alpha) + slower;
}

/// The prices of tree and ring. kNone: not available.
struct Family {
    Ticks given[kFamily][kProtocols];  ///< as NCCL passed it
    Ticks nccl[kFamily][kProtocols];   ///< before anything was written into its constants
    Ticks now[kFamily][kProtocols];    ///< what the choice shall be made by
};

/// The others' cheapest price, and what the cheapest would be with the measured network charged to
/// it.
struct Others {
    Ticks price = kNone;
    Ticks charged = kNone;
};

bool inFamily(int algorithm, int protocol) {
    return algorithm < kFamily && protocol < kProtocols;
}

void keepLeast(Ticks& least, Ticks price) {
    if (least == kNone || price < least) least = price;
}

/// False when a value makes no sense. Zero is nonsense too: another tuner's way to force an entry.
bool plausible(const float* table, int entries) {
    // Of the floats' bits: the sign says "not available", and positive ones are ordered as whole
    // numbers are.
    constexpr std::uint32_t kCostMax = 0x5368d4a5U;  // 10^12
    std::uint32_t bad = 0;
    for (int i = 0; i < entries; ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, table + i, sizeof bits);
        bad |= static_cast<std::uint32_t>(bits - 1 >= kCostMax - 1) & ~(bits >> 31);
    }
    return bad == 0;
}

/// Reads tree and ring, and prices them with the measured network if asked to.
void priceFamily(const Call& call, const float* table, int protocols, bool measured,
                 Family& family) {
    for (int a = 0; a < kFamily; ++a)
        for (int p = 0; p < kProtocols; ++p) {
            const float us = table[a * protocols + p];
            if (us < 0) {
                family.given[a][p] = family.nccl[a][p] = family.now[a][p] = kNone;
                continue;
            }
            const auto algorithm = static_cast<Algorithm>(a);
            const auto protocol = static_cast<Protocol>(p);
            const Ticks given = ticksFromUs(us);
            Way way = Way::RingGather;
            const bool runs = wayOf(algorithm, call.what, way);
            const Ticks written = runs ? writtenOf(call, algorithm, protocol, way) : 0;
            const Ticks nccl = given > written ? given - written : 1;
            Ticks price = nccl;
            if (measured && runs) price += shareOf(call, algorithm, protocol, way, nccl);
            family.given[a][p] = given;
            family.nccl[a][p] = nccl;
            family.now[a][p] = price < 1 ? 1 : price;
        }
}

/// The family's cheapest, leaving out one protocol (or none: -1).
Ticks familyBest(const Family& family, int left_out) {
    Ticks best = kNone;
    for (int a = 0; a < kFamily; ++a)
        for (int p = 0; p < kProtocols; ++p)
            if (p != left_out && family.now[a][p] != kNone) keepLeast(best, family.now[a][p]);
    return best;
}

/// What NCCL itself would have taken within the family.
Choice ncclChoice(const Family& family) {
    Ticks best = kNone;
    Choice choice;
    for (int a = 0; a < kFamily; ++a)
        for (int p = 0; p < kProtocols; ++p) {
            const Ticks price = family.nccl[a][p];
            if (price == kNone || (best != kNone && price >= best)) continue;
            best = price;
            choice = {static_cast<std::int8_t>(a), static_cast<std::int8_t>(p)};
        }
    return choice;
}

/// What NCCL would have taken stays, unless something else is clearly better: prices that lie
/// closer together than the model is exact are no reason to overrule NCCL.
void keepUnlessBetter(Choice nccl, Family& family) {
    if (nccl.algorithm < 0) return;
    const Ticks best = familyBest(family, -1);
    Ticks& kept = family.now[nccl.algorithm][nccl.protocol];
    if (kept > best && kept - best <= best / kClearlyBetter)
        kept = best > marginOf(best) ? best - marginOf(best) : 1;
}

/// LL and LL128 are never newly chosen for large messages, whatever the prices say: the public
/// reports of tuners that did so are of losses of 2x to 39x.
void guardProtocol(const Call& call, Choice nccl, Family& family, Protocol protocol) {
    const int p = static_cast<int>(protocol);
    const bool ll = protocol == Protocol::LL;
    const std::uint64_t largest = ll ? kLlLargest : kLl128Largest;
    if (call.bytes <= largest || nccl.protocol == p) return;
    const std::uint64_t pieces = call.pricing.size.ranks * (ll ? kLlRingPiece : kLl128RingPiece);
    const std::uint64_t limit[kFamily] = {largest, pieces > largest ? pieces : largest};
    const Ticks floor = familyBest(family, p);
    if (floor == kNone) return;
    for (int a = 0; a < kFamily; ++a)
        if (call.bytes > limit[a] && family.now[a][p] != kNone && family.now[a][p] <= floor)
            family.now[a][p] = floor + marginOf(floor);
}

Others readOthers(const Call& call, const float* table, int algorithms, int protocols) {
    Others others;
    const int entries = algorithms * protocols;
    // With NCCL's three protocols the family's rows are the first entries; else its extra ones
    // count here.
    for (int i = protocols == kProtocols ? kFamily * kProtocols : 0; i < entries; ++i) {
        if (table[i] < 0) continue;
        const int a = i / protocols;
        if (inFamily(a, i % protocols)) continue;
        const Ticks price = ticksFromUs(table[i]);
        Ticks charged = price;
        if (a >= kFamily && a < kAlgorithms)
            charged += shadowShare(call, static_cast<Algorithm>(a), price);
        keepLeast(others.price, price);
        keepLeast(others.charged, charged < 1 ? 1 : charged);
    }
    return others;
}

/// Ring and tree cross the network that was measured, and so do NVLS tree, CollNet and PAT, whose
/// entries keep NCCL's price. So that nobody wins for not having been re-priced, who wins is
/// decided with the network charged to everybody, and ring and tree are moved together as far as
/// NCCL needs to see it.
void placeFamily(const Others& others, Family& family) {
    const Ticks best = familyBest(family, -1);
    if (best == kNone || others.price == kNone) return;
    Ticks shift = 0;
    if (best <= others.charged && best >= others.price)
        shift = others.price - marginOf(others.price) - best;
    if (best > others.charged && best <= others.price)
        shift = others.price + marginOf(others.price) - best;
    if (shift == 0) return;
    for (auto& row : family.now)
        for (Ticks& price : row)
            if (price != kNone) price = price + shift < 1 ? 1 : price + shift;
}

/// The cheapest entry that the rule allows becomes the cheapest of all. A rule that nothing
/// available fits is passed over.
void applyRule(const Rule& rule, float* table, int algorithms, int protocols) {
    int pinned = -1;
    for (int a = 0; a < algorithms; ++a)
        for (int p = 0; p < protocols; ++p) {
            const int entry = a * protocols + p;
            const bool allowed = (rule.algorithm == kAny || rule.algorithm == a) &&
                                 (rule.protocol == kAny || rule.protocol == p);
            if (allowed && table[entry] >= 0 && (pinned < 0 || table[entry] < table[pinned]))
                pinned = entry;
        }
    if (pinned < 0) return;
    // Strictly below all others, whatever their order in the table.
    Ticks second = kNone;
    for (int entry = 0; entry < algorithms * protocols; ++entry)
        if (entry != pinned && table[entry] >= 0) keepLeast(second, ticksFromUs(table[entry]));
    if (second == kNone || ticksFromUs(table[pinned]) < second) return;
    table[pinned] = usFromTicks(second > marginOf(second) ? second - marginOf(second) : 1);
}

}  // namespace

bool wayOf(Algorithm algorithm, Collective what, Way& way) {
    if (what == Collective::AllReduce) {
        way = algorithm == Algorithm::Tree ? Way::TreeAllReduce : Way::RingAllReduce;
        return true;
    }
    way = Way::RingGather;
    return algorithm == Algorithm::Ring &&
           (what == Collective::AllGather || what == Collective::ReduceScatter);
}

bool isLarge(CommSize size, std::uint64_t bytes) {
    // NCCL: 64 bytes for each rank and channel. The channels are not known here; with fewer than 16
    // the difference is far below the sizes where Simple can win.
    constexpr std::uint64_t kBytesPerRank = 64 * 16;
    return bytes >= kBytesPerRank * size.ranks;
}

Position positionOf(std::uint64_t bytes) {
    if (bytes >> Curve::kFirst == 0) return {};
    int octave = 63 - __builtin_clzll(bytes);
    constexpr int kLast = Curve::kFirst + Curve::kPoints - 2;
    if (octave > kLast) octave = kLast;
    const std::uint64_t over = bytes - (std::uint64_t{1} << octave);
    return {octave - Curve::kFirst, octave >= 16 ? over >> (octave - 16) : over << (16 - octave)};
}

Ticks networkShare(const Pricing& pricing, Algorithm algorithm, Protocol protocol, Collective what,
                   std::uint64_t bytes, int pipe_operations, Ticks price) {
    Way way = Way::RingGather;
    if (!pricing.corrects || !wayOf(algorithm, what, way)) return 0;
    return shareOf(callOf(pricing, what, bytes, pipe_operations), algorithm, protocol, way, price);
}

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
    constexpr int kAlgorithmsMax = 16;
    constexpr int kProtocolsMax = 8;
    constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 48;
    if (table == nullptr || bytes == 0 || bytes > kBytesMax || algorithms < kFamily ||
        algorithms > kAlgorithmsMax || protocols < kProtocols || protocols > kProtocolsMax ||
        static_cast<int>(what) >= kCollectives)
        return false;
    const Rule* const rule = pricing.rules.find(what, bytes, pricing.size.nodes);
    const bool leave = rule != nullptr && rule->algorithm == kLeaveToNccl;
    // Broadcast and Reduce exist as a ring only, and its protocols cost the same more.
    const bool priced =
        pricing.corrects && what != Collective::Broadcast && what != Collective::Reduce;
    if (!priced && rule == nullptr) return true;
    if (!plausible(table, algorithms * protocols)) return false;
    if (priced) {
        const Call call = callOf(pricing, what, bytes, pipe_operations);
        Family family;
        priceFamily(call, table, protocols, !leave, family);
        if (!leave) {
            const Choice nccl = ncclChoice(family);
            guardProtocol(call, nccl, family, Protocol::LL);
            guardProtocol(call, nccl, family, Protocol::LL128);
            keepUnlessBetter(nccl, family);
            placeFamily(readOthers(call, table, algorithms, protocols), family);
        }
        for (int a = 0; a < kFamily; ++a)
            for (int p = 0; p < kProtocols; ++p)
                if (family.now[a][p] != family.given[a][p])
                    table[a * protocols + p] = usFromTicks(family.now[a][p]);
    }
    if (rule != nullptr && !leave) applyRule(*rule, table, algorithms, protocols);
    return true;
}

}  // namespace rdmatune::model
