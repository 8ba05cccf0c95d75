// Whatever the text: it is a profile that can be written again just so, or it is refused. What is
// accepted goes through the pricing, rules included.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tuner/config/rule_text.hpp"
#include "tuner/model/pricing.hpp"
#include "tuner/profile/crc32.hpp"
#include "tuner/profile/profile.hpp"

namespace {

void tryText(const std::string& text) {
    rdmatune::FabricProfile profile;
    if (rdmatune::parseProfile(text.c_str(), profile) != rdmatune::ProfileError::None) return;
    char again[rdmatune::kProfileTextMax];
    if (rdmatune::formatProfile(profile, again, sizeof again) == 0 ||
        std::string(text.c_str()).substr(0, text.find('\n')) != again)
        std::abort();
    rdmatune::model::Pricing pricing;
    if (makePricing(profile, {64, 8}, pricing) != rdmatune::model::Aside::No) return;
    prepareOctaves(pricing);
    float table[7][3];
    for (auto& row : table)
        for (float& us : row) us = 100;
    if (!reprice(pricing, rdmatune::model::Collective::AllReduce, 1 << 20, 1, &table[0][0], 7, 3))
        std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    tryText(text);
    // With a right checksum, so that the fields are reached.
    const std::string body = text.substr(0, text.rfind(";crc="));
    char crc[16];
    std::snprintf(crc, sizeof crc, ";crc=%08x", rdmatune::crc32(body.data(), body.size()));
    tryText(body + crc);
    if (const auto rule = rdmatune::compileRule(text)) {
        rdmatune::model::RuleSet set;
        if (!rdmatune::model::parseRules(rule->c_str(), set) || set.count != 1) std::abort();
    }
    return 0;
}
