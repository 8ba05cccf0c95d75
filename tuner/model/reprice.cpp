// Re-pricing a whole table, and who may win.
#include <cstring>

#include "tuner/model/entry_price.hpp"

namespace rdmatune::model {
namespace {

constexpr int kFamily = 2;  // tree and ring are the first two rows
/// Not available: dearer than everything, so that no search has to ask.
constexpr Ticks kNone = INT64_MAX;
constexpr int kTree = static_cast<int>(Algorithm::Tree);
constexpr int kRing = static_cast<int>(Algorithm::Ring);

/// For an algorithm that NCCL alone prices (NVLS tree, CollNet, PAT): the least that the measured
/// network could add to it.
Ticks shadowShare(const Call& call, Algorithm algorithm, Ticks price) {
    const Pricing& pricing = call.pricing;
    const Network& measured = pricing.measured[kTree];
    const std::int64_t passages = call.what == Collective::AllReduce ? 2 : 1;
    const bool tree_like = algorithm == Algorithm::NvlsTree || algorithm == Algorithm::Pat;
    // CollNet and NVLS go up into the switches and down: two passages of one step at most.
    const std::int64_t steps = tree_like ? passages * log2Floor(pricing.size.nodes) : passages;
    const bool twice = algorithm == Algorithm::NvlsTree && pricing.size.nodes > 2;
    const std::uint64_t leaving = twice ? 2 * call.bytes : call.bytes;
    const Ticks before = model::timeOf(pricing.assumed.rate, leaving);
    const Ticks after = model::timeOf(measured.rate, leaving);
    const Ticks bound = price > before ? price : before;
    const Ticks slower = after > bound ? after - bound : 0;
    return steps * (measured.alpha - pricing.assumed.alpha) + slower;
}

/// The prices of tree and ring, entry by entry as in the table. kNone: not available.
constexpr int kEntries = kFamily * kProtocols;
struct Family {
    Ticks given[kEntries];  ///< as NCCL passed it
    Ticks nccl[kEntries];   ///< before anything was written into its constants
    Ticks now[kEntries];    ///< what the choice shall be made by
};

/// The others' cheapest price, and what the cheapest would be with the measured network charged to
/// it.
struct Others {
    Ticks price = kNone;
    Ticks charged = kNone;
};

void keepLeast(Ticks& least, Ticks price) {
    least = price < least ? price : least;
}

/// What the bits of a float say without touching the floating-point unit: the sign says "not
/// available", and positive ones are ordered as whole numbers are.
using Bits = std::int32_t;
constexpr Bits kCostMax = 0x5368d4a5;  // 10^12

/// False when a value makes no sense. Zero is nonsense too: another tuner's way to force an entry.
/// `available`: whether any entry but the family's first six is.
bool plausible(const float* table, int entries, bool& available) {
    // Four at a time: compilers do not take a loop of 21 apart by themselves.
    typedef Bits Four __attribute__((vector_size(16)));
    const auto four = [table](int i) {
        Four bits;
        std::memcpy(&bits, table + i, sizeof bits);
        return bits;
    };
    Four bad = {};
    Four negative = {-1, -1, -1, -1};
    const auto look = [&](Four bits) { bad |= (bits == 0) | (bits > kCostMax); };
    look(four(0));
    look(four(2));
    int i = kEntries;
    for (; i + 4 <= entries; i += 4) {
        const Four bits = four(i);
        look(bits);
        negative &= bits;
    }
    if (i < entries) {  // the last four once more; at least six are there
        const Four bits = four(entries - 4);
        look(bits);
        if (entries - 4 >= kEntries)
            negative &= bits;
        else
            negative = Four{};
    }
    std::uint64_t half[2];
    std::memcpy(half, &bad, sizeof half);
    const bool good = (half[0] | half[1]) == 0;
    std::memcpy(half, &negative, sizeof half);
    constexpr std::uint64_t kSigns = 0x8000000080000000U;
    available = (half[0] & half[1] & kSigns) != kSigns;
    return good;
}

/// Reads one of the family's rows, and prices it with the measured network if asked to.
template <bool kIsTree>
void priceRow(const Call& shared, Way way, bool measured, const float* row, Family& family) {
    constexpr int kFirst = (kIsTree ? kTree : kRing) * kProtocols;
    const Call call = shared;  // so that no write to `family` makes the compiler read it again
    const int w = static_cast<int>(way);
    const NcclFigures* const given = call.pricing.given[w];
    const OctaveTerms* const terms = call.pricing.octave[call.octave][w];
    const Ticks kept = call.pricing.kept;
    for (int p = 0; p < kProtocols; ++p) {
        Ticks passed = kNone;
        Ticks nccl = kNone;
        Ticks price = kNone;
        if (row[p] >= 0) {
            passed = ticksFromUs(row[p]);
            Ticks written = given[p].written[call.large];
            if (call.operations != 1) [[unlikely]]
                written *= latencyCount(call, way);
            nccl = passed > written ? passed - written : 1;
            price = nccl;
            if (measured) price = pricedAny<kIsTree>(call, way, given[p], terms[p], kept, nccl);
            price = price < 1 ? 1 : price;
        }
        family.given[kFirst + p] = passed;
        family.nccl[kFirst + p] = nccl;
        family.now[kFirst + p] = price;
    }
}

/// A row that the model has nothing to say of: tree with collectives that are no allreduce.
void keepRow(const float* row, int first, Family& family) {
    for (int p = 0; p < kProtocols; ++p) {
        const Ticks price = row[p] < 0 ? kNone : ticksFromUs(row[p]) < 1 ? 1 : ticksFromUs(row[p]);
        family.given[first + p] = family.nccl[first + p] = family.now[first + p] = price;
    }
}

void priceFamily(const Call& call, const float* table, int protocols, bool measured,
                 Family& family) {
    if (call.what == Collective::AllReduce) {
        priceRow<true>(call, Way::TreeAllReduce, measured, table, family);
        priceRow<false>(call, Way::RingAllReduce, measured, table + protocols, family);
    } else {
        keepRow(table, kTree * kProtocols, family);
        priceRow<false>(call, Way::RingGather, measured, table + protocols, family);
    }
}

/// The first of the cheapest.
int leastOf(const Ticks (&price)[kEntries]) {
    int least = 0;
    Ticks best = price[0];
    for (int i = 1; i < kEntries; ++i) {
        const bool better = price[i] < best;
        least = better ? i : least;
        best = better ? price[i] : best;
    }
    return least;
}

/// What NCCL would have taken (`nccl`) stays, unless something else is clearly better: prices that
/// lie closer together than the model is exact are no reason to overrule NCCL. Returns the least
/// price.
Ticks keepUnlessBetter(int nccl, Ticks best, Family& family) {
    Ticks& kept = family.now[nccl];
    if (kept > best && kept - best <= best / kClearlyBetter)
        kept = best > marginOf(best) ? best - marginOf(best) : 1;
    return kept < best ? kept : best;
}

/// LL and LL128 are never newly chosen for large messages, whatever the prices say: the public
/// reports of tuners that did so are of losses of 2x to 39x. `best`: the cheapest entry; returns
/// the cheapest then.
int guardProtocol(const Call& call, int nccl, int best, Family& family, Protocol protocol) {
    const int p = static_cast<int>(protocol);
    const bool ll = protocol == Protocol::LL;
    const std::uint64_t largest = ll ? kLlLargest : kLl128Largest;
    if (call.bytes <= largest || best % kProtocols != p || nccl % kProtocols == p) return best;
    const std::uint64_t pieces = call.pricing.size.ranks * (ll ? kLlRingPiece : kLl128RingPiece);
    const std::uint64_t limit[kFamily] = {largest, pieces > largest ? pieces : largest};
    Ticks floor = kNone;  // the cheapest of the other protocols
    for (int i = 0; i < kEntries; ++i)
        if (i % kProtocols != p) keepLeast(floor, family.now[i]);
    if (floor == kNone) return best;
    for (int a = 0; a < kFamily; ++a) {
        Ticks& price = family.now[a * kProtocols + p];
        if (call.bytes > limit[a] && price <= floor) price = floor + marginOf(floor);
    }
    return leastOf(family.now);
}

Others readOthers(const Call& call, const float* table, int algorithms, int protocols) {
    Others others;
    const int entries = algorithms * protocols;
    // With NCCL's three protocols the family's rows are the first entries; else its extra ones
    // count here.
    for (int i = protocols == kProtocols ? kEntries : 0; i < entries; ++i) {
        if (table[i] < 0) continue;
        const int a = i / protocols;
        if (a < kFamily && i % protocols < kProtocols) continue;
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
void placeFamily(const Others& others, Ticks best, Family& family) {
    if (others.price == kNone) return;
    Ticks shift = 0;
    if (best <= others.charged && best >= others.price)
        shift = others.price - marginOf(others.price) - best;
    if (best > others.charged && best <= others.price)
        shift = others.price + marginOf(others.price) - best;
    if (shift == 0) return;
    for (Ticks& price : family.now)
        if (price != kNone) price = price + shift < 1 ? 1 : price + shift;
}

/// Re-prices tree and ring. `leave`: only takes back what was written into NCCL's constants.
void priceTable(const Call& call, bool leave, bool others, float* table, int algorithms,
                int protocols) {
    Family family;
    priceFamily(call, table, protocols, !leave, family);
    const int nccl = leastOf(family.nccl);
    if (family.nccl[nccl] == kNone) return;
    if (!leave) {
        int best = leastOf(family.now);
        best = guardProtocol(call, nccl, best, family, Protocol::LL);
        best = guardProtocol(call, nccl, best, family, Protocol::LL128);
        const Ticks least = keepUnlessBetter(nccl, family.now[best], family);
        if (others) placeFamily(readOthers(call, table, algorithms, protocols), least, family);
    }
    for (int i = 0; i < kEntries; ++i)
        if (family.now[i] != family.given[i])
            table[i < kProtocols ? i : i + protocols - kProtocols] = usFromTicks(family.now[i]);
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

Ticks networkShare(const Pricing& pricing, Algorithm algorithm, Protocol protocol, Collective what,
                   std::uint64_t bytes, int pipe_operations, Ticks price) {
    Way way = Way::RingGather;
    if (!pricing.corrects || bytes == 0 || bytes >> Pricing::kLast > 0 ||
        !wayOf(algorithm, what, way))
        return 0;
    const Call call = callOf(pricing, what, bytes, pipe_operations);
    const int w = static_cast<int>(way);
    const int p = static_cast<int>(protocol);
    const NcclFigures& given = pricing.given[w][p];
    const OctaveTerms& terms = pricing.octave[call.octave][w][p];
    const Ticks now = way == Way::TreeAllReduce
                          ? pricedAny<true>(call, way, given, terms, pricing.kept, price)
                          : pricedAny<false>(call, way, given, terms, pricing.kept, price);
    return now - price;
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
    constexpr std::uint64_t kBytesMax = std::uint64_t{1} << Pricing::kLast;
    if (table == nullptr || bytes == 0 || bytes > kBytesMax || algorithms < kFamily ||
        algorithms > kAlgorithmsMax || protocols < kProtocols || protocols > kProtocolsMax ||
        static_cast<int>(what) >= kCollectives)
        return false;
    const Rule* const rule = pricing.rules.find(what, bytes, pricing.size.nodes);
    const bool leave = rule != nullptr && rule->algorithm == kLeaveToNccl;
    // Broadcast and Reduce exist as a ring only, and its protocols cost the same more.
    const bool corrected =
        pricing.corrects && what != Collective::Broadcast && what != Collective::Reduce;
    if (!corrected && rule == nullptr) return true;
    bool others = true;
    if (!plausible(table, algorithms * protocols, others)) return false;
    if (corrected)
        priceTable(callOf(pricing, what, bytes, pipe_operations), leave,
                   others || protocols != kProtocols, table, algorithms, protocols);
    if (rule != nullptr && !leave) applyRule(*rule, table, algorithms, protocols);
    return true;
}

}  // namespace rdmatune::model
