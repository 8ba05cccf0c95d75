// The plugin as NCCL uses it: opened by path, found by symbol, called through each interface
// version.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/model/cases.hpp"
#include "tuner/nccl/abi.hpp"
#include "tuner/profile/profile.hpp"

namespace rdmatune::nccl {
namespace {

using model::Choice;
using model::Collective;
using model::Table;

std::mutex log_guard;
std::vector<std::string> logged;

void collect(int level, unsigned long flags, const char*, int, const char* format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    const std::lock_guard lock(log_guard);
    EXPECT_EQ(level, kLogInfo);
    EXPECT_EQ(flags, kLogTuning);
    logged.emplace_back(line);
}

int count(const std::string& part) {
    const std::lock_guard lock(log_guard);
    int found = 0;
    for (const std::string& line : logged) found += line.find(part) != std::string::npos ? 1 : 0;
    return found;
}

Constants defaultConstants() {
    Constants c{};
    constexpr double kBase[2][3] = {{6.8, 14, 8.4}, {6.6, 14, 8.4}};
    constexpr double kInside[2][3] = {{0.6, 1.25, 4}, {0.6, 1.9, 3.4}};
    constexpr double kBetween[2][3] = {{5, 8.5, 14}, {2.7, 4, 14}};
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < 3; ++p) {
            c.base_latencies[a][p] = kBase[a][p];
            c.hw_latencies[0][a][p] = kInside[a][p];
            c.hw_latencies[2][a][p] = kBetween[a][p];
        }
    c.hw_latencies[2][5][2] = 20.9;
    return c;
}

/// The plugin, opened anew: what it has said once, it will say again.
class Plugin : public ::testing::Test {
  protected:
    void SetUp() override {
        logged.clear();
        library_ = dlopen(TUNER_PATH, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library_, nullptr) << dlerror();
        for (const char* name : {"NCCL_ALGO", "NCCL_PROTO", "RDMA_TUNE_PROFILE"}) unsetenv(name);
    }
    void TearDown() override {
        unsetenv("RDMA_TUNE_PROFILE");
        if (library_ != nullptr) {
            EXPECT_EQ(dlclose(library_), 0);
        }
    }
    template <class Interface>
    const Interface& get(const char* name) {
        const void* symbol = dlsym(library_, name);
        EXPECT_NE(symbol, nullptr) << name;
        return *static_cast<const Interface*>(symbol);
    }
    const TunerV2& v2() { return get<TunerV2>("ncclTunerPlugin_v2"); }
    const TunerV3& v3() { return get<TunerV3>("ncclTunerPlugin_v3"); }
    const TunerV4& v4() { return get<TunerV4>("ncclTunerPlugin_v4"); }
    const TunerV5& v5() { return get<TunerV5>("ncclTunerPlugin_v5"); }
    const TunerV6& v6() { return get<TunerV6>("ncclTunerPlugin_v6"); }

    static void use(const FabricProfile& profile) {
        char text[kProfileTextMax];
        ASSERT_GT(formatProfile(profile, text, sizeof text), 0U);
        setenv("RDMA_TUNE_PROFILE", text, 1);
    }
    static float** pointer(Table& table) { return reinterpret_cast<float**>(table.data()); }

    void* library_ = nullptr;
};

/// NCCL's own table after a v5 init has changed the constants: its formula, once more.
Table tableWith(const Constants& constants, const model::Shape& shape, Collective what,
                std::uint64_t bytes) {
    model::LatencyTable latency = model::kDefaultLatencies;
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < 3; ++p)
            latency.inter[a][p] = static_cast<model::Ticks>(constants.hw_latencies[2][a][p] * 1024);
    float family[2][3];
    asTable(ncclPrices(shape, latency, what, bytes), family);
    Table table;
    std::memcpy(table.cost, family, sizeof family);
    return table;
}

TEST_F(Plugin, EveryVersionHasItsNameAndFunctions) {
    EXPECT_STREQ(v2().name, "rdma-tune");
    EXPECT_STREQ(v6().name, "rdma-tune");
    EXPECT_NE(v3().getCollInfo, nullptr);
    EXPECT_NE(v4().destroy, nullptr);
    EXPECT_NE(v5().finalize, nullptr);
    EXPECT_EQ(v6().getChunkSize, nullptr);  // chunk sizes stay NCCL's
}

TEST_F(Plugin, StandsAsideAndSaysSoOnce) {
    const struct {
        const char* profile;
        std::size_t ranks;
        std::size_t nodes;
    } kCases[] = {{nullptr, 16, 2},
                  {"rt1;nodes=4;crc=00000000", 16, 2},
                  {"rt9;future", 16, 2},
                  {"hello", 16, 2}};
    for (const auto& c : kCases) {
        if (c.profile != nullptr) setenv("RDMA_TUNE_PROFILE", c.profile, 1);
        for (int again = 0; again < 3; ++again) {
            void* context = &context;
            Constants constants = defaultConstants();
            const Constants before = constants;
            EXPECT_EQ(v5().init(&context, 7, c.ranks, c.nodes, collect, nullptr, &constants),
                      kSuccess);
            EXPECT_EQ(context, nullptr);
            EXPECT_EQ(std::memcmp(&constants, &before, sizeof before), 0);
            Table table = tableWith(constants, model::shapeOf({16, 2}, 8, 50),
                                    Collective::AllReduce, 1 << 20);
            const Table untouched = table;
            int channels = 0;
            EXPECT_EQ(v5().getCollInfo(context, 4, 1 << 20, 1, pointer(table), 7, 3, 0, &channels),
                      kSuccess);
            EXPECT_EQ(table, untouched);
            EXPECT_EQ(channels, 0);
            EXPECT_EQ(v5().finalize(context), kSuccess);
        }
    }
    EXPECT_EQ(count("RDMA_TUNE_PROFILE is not set"), 1);
    EXPECT_EQ(count("checksum"), 1);  // whatever is wrong with a profile is one kind of line
    EXPECT_EQ(count("standing aside"), 2);
}

TEST_F(Plugin, StandsAsideOnOneNodeNeutralAndTooMany) {
    void* context = nullptr;
    use(model::profileOf(4, 10, 40, 50));
    for (int again = 0; again < 2; ++again) {
        EXPECT_EQ(v4().init(8, 1, collect, &context), kSuccess);
        EXPECT_EQ(context, nullptr);
        EXPECT_EQ(v4().init(64, 8, collect, &context), kSuccess);
        EXPECT_EQ(context, nullptr);
        EXPECT_EQ(v4().init(0, 0, collect, &context), kSuccess);
        EXPECT_EQ(context, nullptr);
        EXPECT_EQ(v4().init(SIZE_MAX, SIZE_MAX, collect, &context), kSuccess);
        EXPECT_EQ(context, nullptr);
    }
    EXPECT_EQ(count("on one node"), 1);
    EXPECT_EQ(count("more nodes than"), 1);
    EXPECT_EQ(count("impossible number"), 1);
    FabricProfile neutral = model::profileOf(4, 10, 40, 50);
    neutral.neutral = true;
    use(neutral);
    EXPECT_EQ(v4().init(16, 2, nullptr, &context), kSuccess);  // no logger is fine too
    EXPECT_EQ(context, nullptr);
    // NVLink joins nodes: not the network that was measured.
    use(model::profileOf(4, 10, 40, 50));
    NvlDomainInfo domains{1, 16, 16};
    EXPECT_EQ(v5().init(&context, 1, 16, 2, collect, &domains, nullptr), kSuccess);
    EXPECT_EQ(context, nullptr);
    EXPECT_EQ(count("NVLink joins"), 1);
}

TEST_F(Plugin, AllVersionsChooseAlike) {
    int different_from_nccl = 0;
    int ordered = 0;
    for (const double alpha : {2.0, 10.0, 40.0})
        for (const double beta : {48.0, 24.0})
            for (const auto& [nodes, gpus] : {std::pair{2U, 8U}, {4U, 8U}, {8U, 4U}, {8U, 1U}}) {
                const model::CommSize size{nodes * gpus, nodes};
                const model::Shape shape = model::shapeOf(size, gpus, 50);
                FabricProfile profile = model::profileOf(nodes, alpha, beta, 50, gpus);
                profile.tree.alpha_ns += 700;  // ring and tree need not measure the same
                profile.tree.alpha_worst_ns += 3000;
                use(profile);
                void* c2 = nullptr;
                void* c3 = nullptr;
                void* c4 = nullptr;
                void* c5 = nullptr;
                void* c6 = nullptr;
                Constants constants = defaultConstants();
                ASSERT_EQ(v2().init(size.ranks, nodes, nullptr, &c2), kSuccess);
                ASSERT_EQ(v3().init(size.ranks, nodes, nullptr, &c3), kSuccess);
                ASSERT_EQ(v4().init(size.ranks, nodes, nullptr, &c4), kSuccess);
                Constants constants6 = constants;
                NvlDomainInfo domains{static_cast<int>(nodes), static_cast<int>(gpus),
                                      static_cast<int>(gpus)};
                ASSERT_EQ(v5().init(&c5, 1, size.ranks, nodes, nullptr, &domains, &constants),
                          kSuccess);
                ASSERT_EQ(v6().init(&c6, 1, size.ranks, nodes, nullptr, &domains, &constants6),
                          kSuccess);
                EXPECT_EQ(constants.hw_latencies[2][5][2], 20.9);  // NVLS tree keeps its price
                EXPECT_EQ(constants.hw_latencies[2][1][0] > 2.7, gpus > 1);
                for (const Collective what :
                     {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter})
                    for (std::uint64_t bytes = 1024; bytes <= (std::uint64_t{1} << 33);
                         bytes *= 2) {
                        const Table own = model::tableOf(shape, what, bytes);
                        Table t3 = own;
                        Table t4 = own;
                        Table t5 = tableWith(constants, shape, what, bytes);
                        Table t6 = t5;
                        int channels[4] = {0, 3, 0, 5};
                        const int f = static_cast<int>(what);
                        ASSERT_EQ(
                            v3().getCollInfo(c3, f, bytes, 1, pointer(t3), 7, 3, &channels[0]),
                            kSuccess);
                        ASSERT_EQ(
                            v4().getCollInfo(c4, f, bytes, 1, pointer(t4), 7, 3, 1, &channels[1]),
                            kSuccess);
                        ASSERT_EQ(
                            v5().getCollInfo(c5, f, bytes, 1, pointer(t5), 7, 3, 1, &channels[2]),
                            kSuccess);
                        ASSERT_EQ(
                            v6().getCollInfo(c6, f, bytes, 1, pointer(t6), 7, 3, 1, &channels[3]),
                            kSuccess);
                        EXPECT_EQ(t3, t4);
                        EXPECT_EQ(t5, t6);
                        EXPECT_EQ(t4.choice(), t5.choice())
                            << nodes << " x " << gpus << " alpha " << alpha << " beta " << beta
                            << " bytes " << bytes;
                        // S57, nccl-eBPF: NCCL's own number of channels stays.
                        EXPECT_EQ(channels[0] + channels[1] + channels[2] + channels[3], 8);
                        if (t4.choice() != own.choice()) ++different_from_nccl;
                        // v2 orders only where it is sure; where it does, it is the same algorithm.
                        int algorithm = -1;
                        int protocol = -1;
                        int none = 0;
                        ASSERT_EQ(
                            v2().getCollInfo(c2, f, bytes, 0, 0, 1, &algorithm, &protocol, &none),
                            kSuccess);
                        EXPECT_EQ(none, 0);
                        EXPECT_EQ(algorithm < 0, protocol < 0);
                        EXPECT_NE(protocol, 1);
                        if (algorithm >= 0) {
                            ++ordered;
                            EXPECT_EQ(algorithm, t4.choice().algorithm)
                                << nodes << " x " << gpus << " " << bytes;
                            EXPECT_NE((Choice{static_cast<std::int8_t>(algorithm),
                                              static_cast<std::int8_t>(protocol)}),
                                      own.choice());
                        }
                    }
                v2().destroy(c2);
                v3().destroy(c3);
                v4().destroy(c4);
                v5().finalize(c5);
                v6().finalize(c6);
            }
    EXPECT_GT(different_from_nccl, 20);  // or this test would prove nothing
    EXPECT_GT(ordered, 0);
}

TEST_F(Plugin, V2LeavesTheUsersChoiceAlone) {
    use(model::profileOf(4, 200, 48, 50));
    const auto orders = [&](int collnet, int nvls) {
        void* context = nullptr;
        EXPECT_EQ(v2().init(32, 4, nullptr, &context), kSuccess);
        int found = 0;
        for (std::uint64_t bytes = 1024; bytes <= (std::uint64_t{1} << 33); bytes *= 2) {
            int algorithm = -1;
            int protocol = -1;
            int channels = 0;
            EXPECT_EQ(v2().getCollInfo(context, 4, bytes, collnet, nvls, 1, &algorithm, &protocol,
                                       &channels),
                      kSuccess);
            found += algorithm >= 0 ? 1 : 0;
        }
        v2().destroy(context);
        return found;
    };
    EXPECT_GT(orders(0, 0), 0);
    EXPECT_EQ(orders(1, 0), 0);
    EXPECT_EQ(orders(0, 1), 0);
    setenv("NCCL_ALGO", "ring", 1);
    EXPECT_EQ(orders(0, 0), 0);
    unsetenv("NCCL_ALGO");
    setenv("NCCL_PROTO", "LL", 1);
    EXPECT_EQ(orders(0, 0), 0);
    unsetenv("NCCL_PROTO");
}

TEST_F(Plugin, TheAssumedNetworkWritesNothing) {
    use(model::assumedProfile(4, 50));
    Constants constants = defaultConstants();
    const Constants before = constants;
    void* context = nullptr;
    ASSERT_EQ(v5().init(&context, 1, 32, 4, collect, nullptr, &constants), kSuccess);
    EXPECT_EQ(std::memcmp(&constants, &before, sizeof before), 0);
    Table table =
        tableWith(constants, model::shapeOf({32, 4}, 8, 50), Collective::AllReduce, 1 << 22);
    const Table own = table;
    ASSERT_EQ(v5().getCollInfo(context, 4, 1 << 22, 1, pointer(table), 7, 3, 0, nullptr), kSuccess);
    EXPECT_EQ(table, own);
    v5().finalize(context);
}

TEST_F(Plugin, WrongCallsSucceedAndChangeNothing) {
    use(model::profileOf(4, 30, 20, 50));
    void* context = nullptr;
    ASSERT_EQ(v4().init(32, 4, collect, &context), kSuccess);
    ASSERT_NE(context, nullptr);
    EXPECT_EQ(v4().init(32, 4, collect, nullptr), kSuccess);
    Table table = model::tableOf(model::shapeOf({32, 4}, 8, 50), Collective::AllReduce, 1 << 22);
    const Table own = table;
    for (const int function : {-1, 5, 99})
        EXPECT_EQ(v4().getCollInfo(context, function, 1 << 22, 1, pointer(table), 7, 3, 0, nullptr),
                  kSuccess);
    EXPECT_EQ(v4().getCollInfo(context, 4, 0, 1, pointer(table), 7, 3, 0, nullptr), kSuccess);
    EXPECT_EQ(v4().getCollInfo(context, 4, 1 << 22, 1, nullptr, 7, 3, 0, nullptr), kSuccess);
    EXPECT_EQ(v4().getCollInfo(context, 4, 1 << 22, 1, pointer(table), -7, 3, 0, nullptr),
              kSuccess);
    EXPECT_EQ(v4().getCollInfo(nullptr, 4, 1 << 22, 1, pointer(table), 7, 3, 0, nullptr), kSuccess);
    EXPECT_EQ(v2().getCollInfo(context, 4, 1 << 22, 0, 0, 1, nullptr, nullptr, nullptr), kSuccess);
    EXPECT_EQ(table, own);
    EXPECT_EQ(v4().destroy(context), kSuccess);
    EXPECT_EQ(v4().destroy(nullptr), kSuccess);
}

TEST_F(Plugin, ExplainsItselfOncePerProcess) {
    use(model::profileOf(4, 30, 24, 50));
    for (int i = 0; i < 3; ++i) {
        void* context = nullptr;
        ASSERT_EQ(v4().init(32, 4, collect, &context), kSuccess);
        v4().destroy(context);
    }
    EXPECT_EQ(count("32 ranks on 4 nodes, 8 rails: ring 30.00 us and 192.0 GB/s"), 1);
    EXPECT_EQ(count("allreduce: ring from"), 1);
    EXPECT_GE(count("NCCL alone:"), 8);
    for (const std::string& line : logged) EXPECT_EQ(line.substr(0, 17), "TUNER/rdma-tune: ");
}

TEST_F(Plugin, ManyCommunicatorsFromManyThreads) {
    use(model::profileOf(8, 20, 30, 50));
    const Table own =
        model::tableOf(model::shapeOf({64, 8}, 8, 50), Collective::AllReduce, 1 << 22);
    const TunerV5& plugin = v5();
    std::vector<std::thread> threads;
    std::vector<Table> results(8);
    for (std::size_t t = 0; t < results.size(); ++t)
        threads.emplace_back([&, t] {
            std::vector<void*> contexts(8, nullptr);
            for (void*& context : contexts)
                EXPECT_EQ(plugin.init(&context, t, 64, 8, collect, nullptr, nullptr), kSuccess);
            for (int round = 0; round < 200; ++round)
                for (void* context : contexts) {
                    Table table = own;
                    EXPECT_EQ(plugin.getCollInfo(context, 4, 1 << 22, 1, pointer(table), 7, 3, 0,
                                                 nullptr),
                              kSuccess);
                    results[t] = table;
                }
            for (void* context : contexts) EXPECT_EQ(plugin.finalize(context), kSuccess);
        });
    for (std::thread& thread : threads) thread.join();
    for (const Table& table : results) EXPECT_EQ(table, results[0]);
    EXPECT_NE(results[0], own);
}

TEST_F(Plugin, OneCommunicatorUsedByManyThreads) {
    use(model::profileOf(8, 20, 30, 50));
    void* context = nullptr;
    ASSERT_EQ(v5().init(&context, 1, 64, 8, nullptr, nullptr, nullptr), kSuccess);
    const Table own =
        model::tableOf(model::shapeOf({64, 8}, 8, 50), Collective::AllReduce, 1 << 22);
    const auto getCollInfo = v5().getCollInfo;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&] {
            for (int round = 0; round < 500; ++round) {
                Table table = own;
                EXPECT_EQ(getCollInfo(context, 4, 1 << 22, 1, pointer(table), 7, 3, 0, nullptr),
                          kSuccess);
            }
        });
    for (std::thread& thread : threads) thread.join();
    v5().finalize(context);
}

TEST_F(Plugin, SurvivesForkAndReload) {
    use(model::profileOf(4, 20, 30, 50));
    void* context = nullptr;
    ASSERT_EQ(v4().init(32, 4, nullptr, &context), kSuccess);
    Table table = model::tableOf(model::shapeOf({32, 4}, 8, 50), Collective::AllReduce, 1 << 22);
    Table expected = table;
    ASSERT_EQ(v4().getCollInfo(context, 4, 1 << 22, 1, pointer(expected), 7, 3, 0, nullptr),
              kSuccess);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        Table again = table;
        v4().getCollInfo(context, 4, 1 << 22, 1, pointer(again), 7, 3, 0, nullptr);
        v4().destroy(context);
        void* fresh = nullptr;
        v4().init(32, 4, nullptr, &fresh);
        Table anew = table;
        v4().getCollInfo(fresh, 4, 1 << 22, 1, pointer(anew), 7, 3, 0, nullptr);
        _exit(again == expected && anew == expected ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    v4().destroy(context);
    for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(dlclose(library_), 0);
        library_ = dlopen(TUNER_PATH, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library_, nullptr);
        void* anew = nullptr;
        ASSERT_EQ(v4().init(32, 4, nullptr, &anew), kSuccess);
        Table again = table;
        ASSERT_EQ(v4().getCollInfo(anew, 4, 1 << 22, 1, pointer(again), 7, 3, 0, nullptr),
                  kSuccess);
        EXPECT_EQ(again, expected);
        v4().destroy(anew);
    }
}

}  // namespace
}  // namespace rdmatune::nccl
