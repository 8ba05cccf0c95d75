// What NCCL would never pass, or passes only once in a lifetime: the plugin answers with success,
// and changes nothing or leaves prices that NCCL can choose from.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "tests/unit/model/cases.hpp"
#include "tuner/nccl/abi.hpp"
#include "tuner/profile/profile.hpp"

namespace rdmatune::nccl {
namespace {

using model::Collective;
using model::Table;

class Hostile : public ::testing::Test {
  protected:
    void SetUp() override {
        library_ = dlopen(TUNER_PATH, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library_, nullptr) << dlerror();
        v2_ = static_cast<const TunerV2*>(dlsym(library_, "ncclTunerPlugin_v2"));
        v3_ = static_cast<const TunerV3*>(dlsym(library_, "ncclTunerPlugin_v3"));
        v5_ = static_cast<const TunerV5*>(dlsym(library_, "ncclTunerPlugin_v5"));
        ASSERT_TRUE(v2_ != nullptr && v3_ != nullptr && v5_ != nullptr);
    }
    void TearDown() override {
        unsetenv("RDMA_TUNE_PROFILE");
        if (library_ != nullptr) dlclose(library_);
    }
    static void use(const FabricProfile& profile) {
        char text[kProfileTextMax];
        ASSERT_GT(formatProfile(profile, text, sizeof text), 0U);
        setenv("RDMA_TUNE_PROFILE", text, 1);
    }
    static float** pointer(Table& table) { return reinterpret_cast<float**>(table.data()); }
    /// Every price is still one: what was not available is not, and the rest is above zero.
    static void expectPrices(const Table& before, const Table& after, const char* what) {
        for (int a = 0; a < model::kAlgorithms; ++a)
            for (int p = 0; p < model::kProtocols; ++p) {
                const float us = after.cost[a][p];
                if (before.cost[a][p] < 0)
                    EXPECT_EQ(us, before.cost[a][p]) << what;
                else
                    EXPECT_TRUE(std::isfinite(us) && us > 0) << what << ": " << us;
            }
    }

    void* library_ = nullptr;
    const TunerV2* v2_ = nullptr;
    const TunerV3* v3_ = nullptr;
    const TunerV5* v5_ = nullptr;
};

TEST_F(Hostile, AnySizeAndAnyNumberOfOperations) {
    use(model::profileOf(4, 30, 20, 50));
    void* context = nullptr;
    ASSERT_EQ(v3_->init(32, 4, nullptr, &context), kSuccess);
    ASSERT_NE(context, nullptr);
    const Table own =
        model::tableOf(model::shapeOf({32, 4}, 8, 50), Collective::AllReduce, 1 << 20);
    std::vector<std::size_t> sizes = {0, 1, 255, 256, 257, SIZE_MAX, SIZE_MAX - 1};
    for (int bit = 1; bit < 64; ++bit) sizes.push_back(std::size_t{1} << bit);
    for (const std::size_t bytes : sizes)
        for (const int operations : {INT_MIN, -1, 0, 1, 8, 9, 1024, INT_MAX})
            for (const int function : {2, 3, 4}) {
                Table table = own;
                int channels = 5;
                ASSERT_EQ(v3_->getCollInfo(context, function, bytes, operations, pointer(table), 7,
                                           3, &channels),
                          kSuccess);
                EXPECT_EQ(channels, 5);
                expectPrices(own, table, "v3");
                // Sizes that cannot be are left alone.
                const bool possible = bytes > 0 && bytes <= std::size_t{1} << 48;
                EXPECT_EQ(table != own, possible) << bytes << " bytes, " << operations;
                int algorithm = -1;
                int protocol = -1;
                ASSERT_EQ(v2_->getCollInfo(context, function, bytes, 0, 0, operations, &algorithm,
                                           &protocol, &channels),
                          kSuccess);
                EXPECT_LE(algorithm, 1);
                EXPECT_NE(protocol, 1);
            }
    EXPECT_EQ(v3_->destroy(context), kSuccess);
}

TEST_F(Hostile, TablesOfOtherShapes) {
    use(model::profileOf(4, 30, 20, 50));
    void* context = nullptr;
    ASSERT_EQ(v3_->init(32, 4, nullptr, &context), kSuccess);
    for (int algorithms = -2; algorithms <= 17; ++algorithms)
        for (int protocols = -2; protocols <= 9; ++protocols) {
            // Exactly as many entries as claimed, so that a sanitizer sees what lies beyond.
            const int entries = algorithms > 0 && protocols > 0 ? algorithms * protocols : 0;
            std::vector<float> table;
            for (int i = 0; i < entries; ++i) table.push_back(100.F + static_cast<float>(i));
            const std::vector<float> own = table;
            ASSERT_EQ(
                v3_->getCollInfo(context, 4, 1 << 20, 1, reinterpret_cast<float**>(table.data()),
                                 algorithms, protocols, nullptr),
                kSuccess);
            const bool known =
                algorithms >= 2 && algorithms <= 16 && protocols >= 3 && protocols <= 8;
            EXPECT_EQ(table != own, known) << algorithms << " x " << protocols;
            for (int i = 0; i < entries; ++i) {
                const auto at = static_cast<std::size_t>(i);
                if (i / protocols >= 2 || i % protocols >= 3) {
                    EXPECT_EQ(table[at], own[at]) << algorithms << " x " << protocols;
                }
            }
        }
    EXPECT_EQ(v3_->destroy(context), kSuccess);
}

TEST_F(Hostile, RanksThatDoNotDivideAndProfilesOfOtherSizes) {
    const std::pair<std::size_t, std::size_t> kSizes[] = {
        {7, 2}, {17, 3}, {5, 5}, {33, 4}, {std::size_t{1} << 24, 3}};
    for (const std::uint32_t measured : {2U, 3U, 5U, 1000U}) {
        use(model::profileOf(measured, 30, 20, 50));
        for (const auto& [ranks, nodes] : kSizes) {
            void* context = &context;
            ASSERT_EQ(v3_->init(ranks, nodes, nullptr, &context), kSuccess);
            EXPECT_EQ(context != nullptr, nodes <= measured) << ranks << " on " << nodes;
            const Table own =
                model::tableOf(model::shapeOf({16, 2}, 8, 50), Collective::AllReduce, 1 << 20);
            Table table = own;
            ASSERT_EQ(v3_->getCollInfo(context, 4, 1 << 20, 1, pointer(table), 7, 3, nullptr),
                      kSuccess);
            EXPECT_EQ(table != own, context != nullptr);
            expectPrices(own, table, "uneven");
            EXPECT_EQ(v3_->destroy(context), kSuccess);
        }
    }
}

TEST_F(Hostile, ConstantsBeyondBelief) {
    use(model::profileOf(1000, 900000, 0.01, 50));
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const double us : {0.0, 999999.0, -1.0, 1e300, std::nan(""), kInfinity}) {
        Constants constants{};
        for (auto& row : constants.base_latencies)
            for (double& value : row) value = us;
        for (auto& link : constants.hw_latencies)
            for (auto& row : link)
                for (double& value : row) value = us;
        void* context = nullptr;
        ASSERT_EQ(v5_->init(&context, 1, 1U << 24, 1000, nullptr, nullptr, &constants), kSuccess);
        ASSERT_NE(context, nullptr);
        for (const int operations : {1, INT_MAX}) {
            Table own;
            for (int p = 0; p < model::kProtocols; ++p) own.cost[0][p] = own.cost[1][p] = 9e11F;
            Table table = own;
            ASSERT_EQ(v5_->getCollInfo(context, 4, std::size_t{1} << 48, operations, pointer(table),
                                       7, 3, 0, nullptr),
                      kSuccess);
            expectPrices(own, table, "constants");
        }
        EXPECT_EQ(v5_->finalize(context), kSuccess);
    }
}

}  // namespace
}  // namespace rdmatune::nccl
