// Prints a hash over a million re-priced tables made from random profiles. Every build must print
// the same: ranks of one job may run different builds of the plugin on different CPUs.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>

#include "tuner/model/nccl_price.hpp"

namespace {

using namespace rdmatune;
using namespace rdmatune::model;

/// FNV-1a over the bytes of the tables and of the choices.
class Hash {
  public:
    void add(const void* data, std::size_t size) {
        const auto* bytes = static_cast<const unsigned char*>(data);
        for (std::size_t i = 0; i < size; ++i) state_ = (state_ ^ bytes[i]) * 1099511628211U;
    }
    [[nodiscard]] std::uint64_t value() const { return state_; }

  private:
    std::uint64_t state_ = 14695981039346656037U;
};

FabricProfile randomProfile(std::mt19937_64& random) {
    FabricProfile p;
    p.nodes = 2 + static_cast<std::uint32_t>(random() % 1024);
    p.rails = static_cast<std::uint32_t>(random() % 17);
    p.rail_nominal_mbps = static_cast<std::uint32_t>(random() % 120000);
    for (PatternFigures* f : {&p.ring, &p.tree}) {
        f->alpha_ns = static_cast<std::uint32_t>(random() % 120000);
        f->alpha_worst_ns = f->alpha_ns + static_cast<std::uint32_t>(random() % 50000);
        f->beta_mbps = static_cast<std::uint32_t>(random() % 900000);
        f->beta_worst_mbps = static_cast<std::uint32_t>(random() % 900000);
    }
    return p;
}

}  // namespace

int main() {
    // The engine's sequence is fixed by the standard; distributions' are not, and are not used.
    std::mt19937_64 random(20240229);
    Hash hash;
    for (int i = 0; i < 5000; ++i) {
        const FabricProfile profile = randomProfile(random);
        const auto nodes = 2 + static_cast<std::uint32_t>(random() % (profile.nodes - 1));
        const CommSize size{nodes * (1 + static_cast<std::uint32_t>(random() % 8)), nodes};
        Pricing pricing;
        const Aside aside = makePricing(profile, size, pricing);
        hash.add(&aside, sizeof aside);
        if (random() % 2 == 0) pricing.written = extraStep(pricing);
        prepareOctaves(pricing);
        Shape shape;
        shape.size = size;
        shape.rails = pricing.rails;
        shape.rail_mbps = 1 + pricing.rail_mbps;
        for (int k = 0; k < 200; ++k) {
            const auto what = static_cast<Collective>(2 + random() % 3);
            const std::uint64_t bytes = 1 + (random() >> (16 + random() % 48));
            float table[kAlgorithms][kProtocols];
            for (auto& row : table)
                for (float& us : row)
                    us = random() % 4 == 0 ? -1.0F
                                           : static_cast<float>(1 + random() % 100000000) / 64;
            if (k % 4 == 0) {
                float own[2][kProtocols];
                asTable(ncclPrices(shape, pricing.latency, what, bytes), own);
                std::memcpy(table, own, sizeof own);
            }
            reprice(pricing, what, bytes, 1 + static_cast<int>(random() % 3), &table[0][0],
                    kAlgorithms, kProtocols);
            const Choice choice = cheapest(&table[0][0], kAlgorithms, kProtocols);
            hash.add(table, sizeof table);
            hash.add(&choice, sizeof choice);
        }
    }
    std::printf("%016llx\n", static_cast<unsigned long long>(hash.value()));
    return 0;
}
