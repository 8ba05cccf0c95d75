// NCCL's formula against its recorded tables, and the lines that explain.
#include "tuner/model/explain.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "cases.hpp"

namespace rdmatune::model {
namespace {

struct Recording {
    const char* file;
    std::uint32_t rails;
    double rail_gbs;
    Gpu gpu;
    bool nvlink;
    bool amd;
};
constexpr Recording kRecordings[] = {
    {"cost-dgx-h100-2x8.csv", 8, 50, Gpu::Hopper, true, false},
    {"cost-dgx-h100-4x8.csv", 8, 50, Gpu::Hopper, true, false},
    {"cost-dgx-h100-8x8.csv", 8, 50, Gpu::Hopper, true, false},
    {"cost-dgx-a100-2x8.csv", 8, 25, Gpu::Ampere, true, true},
    {"cost-dgx-a100-4x8.csv", 8, 25, Gpu::Ampere, true, true},
    {"cost-hgx-4gpu-2nic-2x4.csv", 2, 50, Gpu::Hopper, true, false},
    {"cost-hgx-4gpu-2nic-4x4.csv", 2, 50, Gpu::Hopper, true, false},
    {"cost-pcie-box-2x4.csv", 1, 25, Gpu::Hopper, false, true}};

TEST(NcclPrices, AreThoseOfTheRecordedTables) {
    const std::vector<Recorded> all = recordedTables();
    if (all.empty()) GTEST_SKIP() << "no recorded tables (RDMA_TUNE_CASES)";
    int compared = 0;
    for (const Recorded& r : all)
        for (const Recording& recording : kRecordings) {
            if (r.file != recording.file || r.what == Collective::Broadcast ||
                r.what == Collective::Reduce)
                continue;
            Shape shape = shapeOf({r.nodes * r.gpus, r.nodes}, recording.rails, recording.rail_gbs,
                                  recording.gpu);
            shape.nvlink = recording.nvlink;
            shape.amd_host = recording.amd;
            LatencyTable latency = kDefaultLatencies;
            if (recording.amd) latency.post = kPostAmd;
            if (!recording.nvlink) std::memcpy(latency.intra, kPciIntra, sizeof latency.intra);
            const FamilyPrices prices = ncclPrices(shape, latency, r.what, r.bytes);
            for (int a = 0; a < 2; ++a)
                for (int p = 0; p < kProtocols; ++p) {
                    const float recorded = r.table.cost[a][p];
                    ASSERT_EQ(recorded < 0, prices.price[a][p] < 0)
                        << r.file << " " << r.bytes << " " << a << p;
                    if (recorded < 0) continue;
                    // The surcharge of ring with Simple begins with the number of channels, which
                    // is not known.
                    const bool surcharge = a == 1 && p == 2 && r.bytes <= 65536;
                    EXPECT_NEAR(static_cast<double>(prices.price[a][p]) / kTicksPerUs / recorded, 1,
                                surcharge ? 0.45 : 0.01)
                        << r.file << " " << r.bytes << " " << kAlgorithmNames[a] << " "
                        << kProtocolNames[p];
                    ++compared;
                }
            float table[2][kProtocols];
            asTable(prices, table);
            EXPECT_EQ(cheapest(&table[0][0], 2, kProtocols),
                      cheapest(&r.table.cost[0][0], 2, kProtocols))
                << r.file << " " << r.bytes;
        }
    EXPECT_GT(compared, 1000);
}

TEST(Explain, SizesForPeople) {
    const auto size = [](std::uint64_t bytes) {
        char text[24];
        formatSize(bytes, text);
        return std::string(text);
    };
    EXPECT_EQ(size(1000), "1000");
    EXPECT_EQ(size(1024), "1K");
    EXPECT_EQ(size(1536), "1.5K");
    EXPECT_EQ(size(std::uint64_t{1} << 30), "1G");
    EXPECT_EQ(size((std::uint64_t{1} << 30) * 700), "700G");
}

TEST(Explain, SaysWhatThePluginDoes) {
    const CommSize size{32, 4};
    const Shape shape = shapeOf(size, 8, 50);
    const Pricing pricing = pricingOf(profileOf(4, 20, 30, 50), size);
    for (std::uint64_t bytes = 1024; bytes <= kLargest; bytes *= 2) {
        Table table = tableOf(shape, Collective::AllReduce, bytes);
        const Explained row = explain(pricing, shape, Collective::AllReduce, bytes);
        EXPECT_EQ(row.nccl_choice, table.choice());
        ASSERT_TRUE(reprice(pricing, Collective::AllReduce, bytes, 1, table.data(), kAlgorithms,
                            kProtocols));
        EXPECT_EQ(row.choice, table.choice());
    }
}

TEST(Explain, TheCrossingIsWhereTheChoiceTurns) {
    const CommSize size{64, 8};
    const Shape shape = shapeOf(size, 8, 50);
    const Pricing pricing = pricingOf(profileOf(8, 60, 48, 50), size);
    const std::uint64_t from = ringFrom(pricing, shape, Collective::AllReduce, true);
    ASSERT_GT(from, kSmallest);
    EXPECT_EQ(explain(pricing, shape, Collective::AllReduce, from).choice.algorithm, 1);
    EXPECT_EQ(explain(pricing, shape, Collective::AllReduce, from - from / 8).choice.algorithm, 0);
    EXPECT_LT(ringFrom(pricing, shape, Collective::AllReduce, false), from);
    char line[kLineMax];
    formatCrossing(from, 0, Collective::AllReduce, line);
    EXPECT_NE(std::string(line).find("(NCCL alone: tree at every size)"), std::string::npos);
}

TEST(Explain, LinesNameFiguresWithUnits) {
    const Pricing pricing = pricingOf(profileOf(4, 12.5, 24, 50), {32, 4});
    char line[kLineMax];
    formatNetwork(pricing, line);
    EXPECT_STREQ(line,
                 "32 ranks on 4 nodes, 8 rails: ring 12.50 us and 192.0 GB/s, tree 12.50 us and "
                 "192.0 GB/s; NCCL assumes "
                 "1.00 us and 384.0 GB/s");
    formatRow(explain(pricing, shapeOf(pricing), Collective::AllGather, 1 << 20),
              Collective::AllGather, line);
    EXPECT_NE(std::string(line).find("ring/"), std::string::npos);
    EXPECT_EQ(std::string(line).find("tree/"), std::string::npos);
}

}  // namespace
}  // namespace rdmatune::model
