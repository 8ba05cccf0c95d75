// Plans of real machines' saved topologies, where those are at hand: RDMA_TUNE_CASES names their
// folder (hwloc/, nccl-xml/, topo-m/), otherwise ../shared/cases beside this project.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "tuner/binding/plan.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Cases : public ::testing::Test {
  protected:
    void SetUp() override {
        const char* named = std::getenv("RDMA_TUNE_CASES");
        folder_ = named != nullptr ? named : "../shared/cases";
        if (!std::filesystem::is_directory(folder_))
            GTEST_SKIP() << "no saved topologies: set RDMA_TUNE_CASES";
    }

    Node read(const std::string& file) const {
        auto node = readTopologyFile((folder_ / file).string());
        EXPECT_TRUE(node.ok()) << node.error().message;
        return node.ok() ? *node : Node{};
    }

    /// One task for each GPU.
    static Plan plan(const Node& node, int tasks = 0) {
        PlanRequest request;
        request.local_tasks = tasks > 0 ? tasks : std::max(1, static_cast<int>(node.gpus.size()));
        auto out = makePlan(node, request);
        EXPECT_TRUE(out.ok()) << out.error().message;
        return out.ok() ? *out : Plan{};
    }

    /// "0:mlx5_1 PIX" for each GPU.
    static std::vector<std::string> pairs(const Node& node, const Plan& plan) {
        std::vector<std::string> out;
        for (const GpuPair& pair : plan.pairs) {
            std::string text = std::to_string(pair.gpu) + ":";
            for (const int hca : pair.hcas)
                text += (text.back() == ':' ? "" : "+") + node.hcas[hca].label();
            out.push_back(text + " " + std::string(toString(pair.distance)));
        }
        return out;
    }

    /// What holds for every plan: the nearest HCA each, none idle that is as near as one used
    /// twice, no CPU given to two ranks.
    static void expectDefensible(const Node& node, const Plan& plan) {
        std::map<int, int> users;
        for (const GpuPair& pair : plan.pairs)
            for (const int hca : pair.hcas) ++users[hca];
        for (const GpuPair& pair : plan.pairs) {
            ASSERT_EQ(pair.hcas.empty(), plan.hcas.empty());
            if (pair.hcas.empty()) continue;
            const auto& row = node.distance[pair.gpu];
            for (const int hca : plan.hcas) {
                EXPECT_LE(pair.distance, row[hca]);
                if (users[pair.hcas.front()] > 1 && row[hca] == pair.distance) {
                    EXPECT_GT(users[hca], 0);
                }
            }
        }
        CpuSet given;
        for (const RankPlan& rank : plan.ranks) {
            EXPECT_TRUE((rank.cpus & given).empty());
            EXPECT_FALSE(rank.reason.empty());
            given = given | rank.cpus;
        }
    }

    std::filesystem::path folder_;
};

TEST_F(Cases, EveryFileGivesADefensiblePlan) {
    int files = 0;
    for (const char* kind : {"hwloc", "nccl-xml", "topo-m"})
        for (const auto& entry : std::filesystem::directory_iterator(folder_ / kind)) {
            SCOPED_TRACE(entry.path().filename().string());
            const Node node = read(std::string(kind) + "/" + entry.path().filename().string());
            for (const int tasks : {0, 1, 3}) expectDefensible(node, plan(node, tasks));
            ++files;
        }
    EXPECT_GT(files, 10);
}

TEST_F(Cases, JuwelsBoosterNamesDifferPlacesDoNot) {
    const Node first = read("hwloc/topo.jwb0001.xml");
    EXPECT_THAT(pairs(first, plan(first)),
                ElementsAre("0:mlx5_1 PIX", "1:mlx5_0 PIX", "2:mlx5_3 PIX", "3:mlx5_2 PIX"));
    const Node fourth = read("hwloc/topo.jwb0004.xml");
    EXPECT_THAT(pairs(fourth, plan(fourth)),
                ElementsAre("0:mlx5_0 PIX", "1:mlx5_1 PIX", "2:mlx5_2 PIX", "3:mlx5_3 PIX"));
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(first.hcas[plan(first).pairs[i].hcas[0]].pci,
                  fourth.hcas[plan(fourth).pairs[i].hcas[0]].pci);
}

TEST_F(Cases, PascalSharesOneHca) {
    const Node node = read("hwloc/cts1-pascal.xml");
    EXPECT_THAT(pairs(node, plan(node)), ElementsAre("0:mlx5_0 PIX", "1:mlx5_0 PIX"));
}

TEST_F(Cases, LassenHasFourPorts) {
    const Node node = read("hwloc/coral-lassen.xml");
    EXPECT_EQ(plan(node).hcas.size(), 4U);
}

TEST_F(Cases, TiogaHasGpusButNoHca) {
    const Node node = read("hwloc/eas-tioga.xml");
    EXPECT_EQ(plan(node).pairs.size(), 8U);
    EXPECT_THAT(plan(node).env, IsEmpty());
}

TEST_F(Cases, P4dHasTwoGpusPerNic) {
    const Node node = read("nccl-xml/aws-p4d-24xl-topo.xml");
    const Plan all = plan(node);
    ASSERT_EQ(all.pairs.size(), 8U);
    ASSERT_EQ(all.hcas.size(), 4U);
    for (int g = 0; g < 8; ++g) EXPECT_THAT(all.pairs[g].hcas, ElementsAre(g / 2));
}

TEST_F(Cases, Ndv4UsesAllEight) {
    const Node node = read("nccl-xml/azure-ndv4-topo.xml");
    const Plan all = plan(node);
    EXPECT_EQ(all.hcas.size(), 8U);
    for (const GpuPair& pair : all.pairs) {
        EXPECT_EQ(pair.hcas.size(), 1U);
        EXPECT_LE(pair.distance, Distance::Pxb);
    }
}

TEST_F(Cases, MatrixH200WithFourNics) {
    const Node node = read("topo-m/01-hgx-h200-4cx7-baremetal.txt");
    EXPECT_THAT(pairs(node, plan(node)),
                ElementsAre("0:mlx5_2 PXB", "1:mlx5_2 PIX", "2:mlx5_3 PXB", "3:mlx5_3 PIX",
                            "4:mlx5_4 PXB", "5:mlx5_4 PIX", "6:mlx5_5 PXB", "7:mlx5_5 PIX"));
    EXPECT_THAT(planToJson(plan(node), node), HasSubstr(R"("pci":null)"));
}

TEST_F(Cases, MatrixTwoRails) {
    const Node node = read("topo-m/03-4xh200nvl-2cx7-rail-plus-oob.txt");
    EXPECT_THAT(pairs(node, plan(node)), ElementsAre("0:rocep80s0 PIX", "1:rocep80s0 PIX",
                                                     "2:rocep203s0 PIX", "3:rocep203s0 PIX"));
}

TEST_F(Cases, MatrixOneEach) {
    for (const char* file :
         {"topo-m/08-4xA100-64GB-4hdr-single-socket.txt",
          "topo-m/11-hgx-8gpu-8nic-identity-PIX.txt", "topo-m/07-hgx-8gpu-8bond-roce-lag.txt"}) {
        SCOPED_TRACE(file);
        const Node node = read(file);
        const Plan all = plan(node);
        for (const GpuPair& pair : all.pairs) EXPECT_THAT(pair.hcas, ElementsAre(pair.gpu));
    }
    const Node bonds = read("topo-m/07-hgx-8gpu-8bond-roce-lag.txt");
    EXPECT_THAT(plan(bonds).notes, Contains(HasSubstr("NCCL_IB_QPS_PER_CONNECTION")));
}

TEST_F(Cases, MatrixSingleNicAcrossSockets) {
    const Node node = read("topo-m/12-4xA100-1nic-other-socket.txt");
    EXPECT_THAT(pairs(node, plan(node)), ElementsAre("0:rocep49s0 SYS", "1:rocep49s0 SYS",
                                                     "2:rocep49s0 SYS", "3:rocep49s0 SYS"));
    EXPECT_THAT(plan(node).notes, Contains(HasSubstr("across sockets")));
}

TEST_F(Cases, MatrixDualPortCardsUseBothPorts) {
    const Node eight = read("topo-m/13-8xRTX4090-pcie-dualport-ib.txt");
    EXPECT_EQ(plan(eight).hcas.size(), 2U);
    const Node two = read("topo-m/18-2gpu-dualport-nic-socket0.txt");
    EXPECT_THAT(pairs(two, plan(two)), ElementsAre("0:NIC0 NODE", "1:NIC1 SYS"));
}

TEST_F(Cases, MatrixDgxA100WithStoragePorts) {
    // The source's matrix is cut after GPU4; what it shows is paired as on the switches.
    const Node node = read("topo-m/23-dgx-a100-12nic-dualrail-nps4.txt");
    PlanRequest request;
    request.gpus = {{0, 1, 2, 3, 4}};
    request.local_tasks = 5;
    const auto known = makePlan(node, request);
    ASSERT_TRUE(known.ok());
    EXPECT_THAT(pairs(node, *known), ElementsAre("0:NIC0 PXB", "1:NIC1 PXB", "2:NIC2 PXB",
                                                 "3:NIC3 PXB", "4:NIC6+NIC7 PXB"));
    std::vector<std::string> left_out;
    for (const auto& excluded : known->excluded) left_out.push_back(excluded.hca);
    EXPECT_THAT(left_out, ElementsAre("NIC4", "NIC5", "NIC8", "NIC9", "NIC10", "NIC11"));
    // What is not known of GPUs 5 to 7 is no reason to use the storage ports too. In truth GPU 5
    // is beside GPU 4, and 6 and 7 have NIC4 and NIC5 (the source says so).
    const Plan all = plan(node);
    EXPECT_THAT(all.notes, Contains(HasSubstr("is not known")));
    EXPECT_THAT(pairs(node, all),
                ElementsAre("0:NIC0 PXB", "1:NIC1 PXB", "2:NIC2 PXB", "3:NIC3 PXB", "4:NIC6 PXB",
                            "5:NIC7 ?", "6:NIC4 ?", "7:NIC5 ?"));
    left_out.clear();
    for (const auto& excluded : all.excluded) left_out.push_back(excluded.hca);
    EXPECT_THAT(left_out, ElementsAre("NIC8", "NIC9", "NIC10", "NIC11"));
}

TEST_F(Cases, MatrixWithoutNics) {
    const Node node = read("topo-m/26-gb200-tray-no-nic-columns.txt");
    const Plan all = plan(node);
    EXPECT_THAT(all.env, IsEmpty());
    EXPECT_EQ(all.ranks[0].cpus.str(), "0-35");
}

}  // namespace
}  // namespace rdmatune
