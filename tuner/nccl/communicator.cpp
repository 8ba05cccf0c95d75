#include "tuner/nccl/communicator.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tuner/model/explain.hpp"
#include "tuner/nccl/log.hpp"
#include "tuner/profile/profile.hpp"

namespace rdmatune::nccl {
namespace {

constexpr char kVariable[] = "RDMA_TUNE_PROFILE";
constexpr int kNetwork = 2;  // hw_latencies' third row
constexpr int kNvlink = 0;

/// One bit for each kind of line, so that a process with hundreds of communicators says each once.
enum Said : unsigned {
    kSaidNoProfile = 1,
    kSaidDamaged = 2,
    kSaidNoMemory = 4,
    kSaidDomains = 8,
    kSaidPriced = 16
};
constexpr unsigned kSaidAside = 32;  // shifted by the Aside
std::atomic<unsigned> said{0};

bool first(unsigned what) {
    return (said.fetch_or(what, std::memory_order_relaxed) & what) == 0;
}

/// Reads the profile. The environment is copied first: another thread may change it.
bool readProfile(Logger logger, FabricProfile& profile) {
    const char* const value = std::getenv(kVariable);
    if (value == nullptr || *value == '\0') {
        if (first(kSaidNoProfile)) say(logger, "standing aside: %s is not set", kVariable);
        return false;
    }
    char text[kProfileTextMax + 1];
    const std::size_t length = strnlen(value, kProfileTextMax);
    std::memcpy(text, value, length);
    text[length] = '\0';
    const ProfileError error = parseProfile(text, profile);
    if (error == ProfileError::None) return true;
    if (first(kSaidDamaged)) say(logger, "standing aside: %s: %s", kVariable, describe(error));
    return false;
}

/// A latency of NCCL's, in ticks; `fallback` where the constant is beyond belief.
model::Ticks ticksOf(double us, model::Ticks fallback) {
    return us >= 0 && us < 1e6
               ? static_cast<model::Ticks>(us * static_cast<double>(model::kTicksPerUs))
               : fallback;
}

void readLatencies(const Constants& constants, model::LatencyTable& table) {
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < model::kProtocols; ++p) {
            table.base[a][p] = ticksOf(constants.base_latencies[a][p], table.base[a][p]);
            table.intra[a][p] = ticksOf(constants.hw_latencies[kNvlink][a][p], table.intra[a][p]);
            table.inter[a][p] = ticksOf(constants.hw_latencies[kNetwork][a][p], table.inter[a][p]);
        }
}

/// Writes what a step between nodes costs more into NCCL's constants, the same for ring and tree,
/// so that all of NCCL's model moves with it; where the two differ, the table is corrected for the
/// rest. Not with one rank per node: there NCCL takes tree's latency for every algorithm, PAT
/// included.
void writeLatencies(model::Pricing& pricing, Constants& constants) {
    const model::Ticks step = extraStep(pricing);
    if (step == 0 || pricing.size.ranks == pricing.size.nodes) return;
    const double us = static_cast<double>(step) / static_cast<double>(model::kTicksPerUs);
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < model::kProtocols; ++p)
            if (!(constants.hw_latencies[kNetwork][a][p] + us > 0)) return;
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < model::kProtocols; ++p) constants.hw_latencies[kNetwork][a][p] += us;
    pricing.written = step;
}

/// What `rdma-tune explain` shows, for the first communicator of the process that is priced. NCCL's
/// own table decides in the end; these lines are by its documented formula.
void explainOnce(const Communicator& communicator, Logger logger) {
    const model::Pricing& pricing = communicator.pricing;
    char line[model::kLineMax];
    model::formatNetwork(pricing, line);
    say(logger, "%s", line);
    if (!pricing.corrects) {
        say(logger, "no price changes; %zu rule(s) of the site", pricing.rules.count);
        return;
    }
    const model::Shape shape = model::shapeOf(pricing);
    constexpr model::Collective kWhat = model::Collective::AllReduce;
    for (std::uint64_t bytes = model::kSmallest; bytes <= model::kLargest; bytes *= 8) {
        model::formatRow(model::explain(pricing, shape, kWhat, bytes), kWhat, line);
        say(logger, "%s", line);
    }
    model::formatCrossing(model::ringFrom(pricing, shape, kWhat, true),
                          model::ringFrom(pricing, shape, kWhat, false), kWhat, line);
    say(logger, "%s", line);
}

bool isSet(const char* variable) {
    const char* const value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

model::CommSize sizeOf(std::size_t ranks, std::size_t nodes) {
    constexpr std::size_t kMax = UINT32_MAX;
    if (ranks > kMax || nodes > kMax) return {};
    return {static_cast<std::uint32_t>(ranks), static_cast<std::uint32_t>(nodes)};
}

}  // namespace

Communicator* open(std::size_t ranks, std::size_t nodes, Logger logger,
                   const NvlDomainInfo* domains, Constants* constants) {
    FabricProfile profile;
    if (!readProfile(logger, profile)) return nullptr;
    // NVLink across nodes (NVL72 and the like): part of what NCCL calls nodes is not joined by the
    // network.
    if (domains != nullptr && domains->domains > 0 &&
        static_cast<std::size_t>(domains->domains) < nodes) {
        if (first(kSaidDomains))
            say(logger, "standing aside: NVLink joins several nodes of the communicator");
        return nullptr;
    }
    auto* const memory = static_cast<Communicator*>(std::calloc(1, sizeof(Communicator)));
    if (memory == nullptr) {
        if (first(kSaidNoMemory)) say(logger, "standing aside: out of memory");
        return nullptr;
    }
    auto* const communicator = new (memory) Communicator;
    const model::Aside aside =
        model::makePricing(profile, sizeOf(ranks, nodes), communicator->pricing);
    if (aside != model::Aside::No) {
        if (first(kSaidAside << static_cast<unsigned>(aside)))
            say(logger, "standing aside (%zu ranks, %zu nodes): %s", ranks, nodes,
                model::describe(aside));
        close(communicator);
        return nullptr;
    }
    communicator->user_chose = isSet("NCCL_ALGO") || isSet("NCCL_PROTO");
    if (constants != nullptr) {
        readLatencies(*constants, communicator->pricing.latency);
        writeLatencies(communicator->pricing, *constants);
    }
    prepareOctaves(communicator->pricing);
    if (first(kSaidPriced)) explainOnce(*communicator, logger);
    return communicator;
}

void close(Communicator* communicator) {
    std::free(communicator);  // trivially destructible
}

void priceTable(const Communicator* communicator, int function, std::size_t bytes,
                int pipe_operations, float** table, int algorithms, int protocols) {
    if (communicator == nullptr || table == nullptr || function < 0 ||
        function >= model::kCollectives)
        return;
    // NCCL's `float**` is the address of one contiguous array.
    model::reprice(communicator->pricing, static_cast<model::Collective>(function), bytes,
                   pipe_operations, reinterpret_cast<float*>(table), algorithms, protocols);
}

}  // namespace rdmatune::nccl
