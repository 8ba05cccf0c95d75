// The v2 interface of NCCL 2.21: no table of prices is passed, and an answer is an order.
#include "tuner/model/nccl_price.hpp"
#include "tuner/nccl/communicator.hpp"

namespace rdmatune::nccl {
namespace {

using model::Choice;
using model::Collective;
using model::Protocol;

constexpr int kLl128 = static_cast<int>(Protocol::LL128);

/// NCCL offers LL128 only where the hardware keeps 128 bytes together, and v2 does not tell where:
/// ordering it elsewhere would corrupt data. So it is never ordered.
model::FamilyPrices withoutLl128(model::FamilyPrices prices) {
    for (auto& row : prices.price) row[kLl128] = -1;
    return prices;
}

/// What to order where the measured network changes the choice; none where NCCL should decide.
Choice changedChoice(const model::Pricing& pricing, model::Gpu gpu, Collective what,
                     std::uint64_t bytes) {
    model::Shape shape;
    shape.size = pricing.size;
    shape.rails = pricing.rails;
    shape.rail_mbps = pricing.rail_mbps;
    shape.gpu = gpu;
    const model::FamilyPrices nccl = ncclPrices(shape, pricing.latency, what, bytes);
    model::FamilyPrices measured = nccl;
    // The guards against LL for large messages are those of the table.
    float table[2][model::kProtocols];
    asTable(nccl, table);
    if (!model::reprice(pricing, what, bytes, 1, &table[0][0], 2, model::kProtocols)) return {};
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < model::kProtocols; ++p)
            measured.price[a][p] = table[a][p] < 0 ? -1 : model::ticksFromUs(table[a][p]);
    const Choice before = cheapest(nccl);
    const Choice after = cheapest(measured);
    if (after.algorithm < 0 || before == after) return {};
    const Choice order = after.protocol == kLl128 ? cheapest(withoutLl128(measured)) : after;
    // The same algorithm as the newer interfaces would get, or none.
    if (order.algorithm != after.algorithm || order == before) return {};
    // In LL128's place, the order must still beat what NCCL would do by itself.
    const bool better = measured.price[order.algorithm][order.protocol] <
                        measured.price[before.algorithm][before.protocol];
    return better ? order : Choice{};
}

/// A rule that names both is an order as it stands, if NCCL is sure to have it.
Choice pinnedChoice(const model::Rule& rule, Collective what) {
    const bool ring = rule.algorithm == static_cast<std::uint8_t>(model::Algorithm::Ring);
    const bool tree = rule.algorithm == static_cast<std::uint8_t>(model::Algorithm::Tree) &&
                      what == Collective::AllReduce;
    const bool sure = rule.protocol == static_cast<std::uint8_t>(Protocol::LL) ||
                      rule.protocol == static_cast<std::uint8_t>(Protocol::Simple);
    if (!(ring || tree) || !sure) return {};
    return {static_cast<std::int8_t>(rule.algorithm), static_cast<std::int8_t>(rule.protocol)};
}

}  // namespace

void choose(const Communicator* communicator, int function, std::size_t bytes, int collnet,
            int nvls, int* algorithm, int* protocol) {
    if (communicator == nullptr || algorithm == nullptr || protocol == nullptr || bytes == 0 ||
        function < 0 || function >= model::kCollectives || communicator->user_chose)
        return;
    const model::Pricing& pricing = communicator->pricing;
    const auto what = static_cast<Collective>(function);
    Choice order;
    if (const model::Rule* const rule = pricing.rules.find(what, bytes, pricing.size.nodes)) {
        order = pinnedChoice(*rule, what);
    } else if (pricing.corrects && pricing.rail_mbps != 0 && collnet == 0 && nvls == 0) {
        // Which GPUs these are is not known: an order must be right for both kinds that NCCL 2.21
        // mostly ran on.
        order = changedChoice(pricing, model::Gpu::Hopper, what, bytes);
        if (order != changedChoice(pricing, model::Gpu::Ampere, what, bytes)) order = {};
    }
    if (order.algorithm < 0) return;
    *algorithm = order.algorithm;
    *protocol = order.protocol;
}

}  // namespace rdmatune::nccl
