#include <fmt/format.h>

#include <algorithm>

#include "tuner/model/explain.hpp"
#include "tuner/report/system_report.hpp"

namespace rdmatune {
namespace {

std::string nameOf(const model::Choice& choice) {
    if (choice.algorithm < 0 || choice.algorithm >= model::kAlgorithms || choice.protocol < 0 ||
        choice.protocol >= model::kProtocols)
        return "";
    return fmt::format("{} {}", model::kAlgorithmNames[choice.algorithm],
                       model::kProtocolNames[choice.protocol]);
}

/// The cheapest protocol of one algorithm, microseconds; 0: none is available.
double best(const model::FamilyPrices& prices, model::Algorithm algorithm) {
    double out = 0;
    for (const model::Ticks price : prices.price[static_cast<int>(algorithm)]) {
        if (price < 0) continue;
        const double us = static_cast<double>(price) / static_cast<double>(model::kTicksPerUs);
        out = out == 0 ? us : std::min(out, us);
    }
    return out;
}

}  // namespace

std::vector<ChoiceRow> choicesFor(const FabricProfile& profile, std::uint32_t ranks_per_node) {
    std::vector<ChoiceRow> out;
    model::Pricing pricing;
    const model::CommSize size{profile.nodes * std::max(1U, ranks_per_node), profile.nodes};
    if (model::makePricing(profile, size, pricing) != model::Aside::No) return out;
    model::prepareOctaves(pricing);
    const model::Shape shape = model::shapeOf(pricing);
    for (std::uint64_t bytes = 1024; bytes <= std::uint64_t{4} << 30; bytes *= 4) {
        const model::Explained row =
            model::explain(pricing, shape, model::Collective::AllReduce, bytes);
        out.push_back({bytes, nameOf(row.nccl_choice), nameOf(row.choice),
                       best(row.priced, model::Algorithm::Tree),
                       best(row.priced, model::Algorithm::Ring)});
    }
    return out;
}

}  // namespace rdmatune
