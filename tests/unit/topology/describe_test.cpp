#include "tuner/topology/describe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "tests/unit/topology/cases.hpp"

namespace rdmatune {
namespace {

using testing::fixture;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Describe, ShowsSwitchesWithWhatHangsOnThem) {
    const std::string text = describe(fixture("hwloc-v2-four-switches.xml"));
    EXPECT_THAT(text, HasSubstr("gpu-a: 4 GPU(s), 6 HCA port(s), 2 NUMA node(s), 8 CPU(s)"));
    EXPECT_THAT(text, HasSubstr("NUMA node 1, package 1, CPUs 4-7\n  switch 0000:91:00.0\n"
                                "    GPU2  0000:94:00.0  NVIDIA H100 80GB HBM3  "
                                "GPU-20000000-aaaa-bbbb-cccc-000000000002\n"
                                "    mlx5_2  0000:93:00.0  InfiniBand  ACTIVE  ib2\n"));
    EXPECT_THAT(text, HasSubstr("mlx5_1  0000:b3:00.0  InfiniBand  DOWN"));
    EXPECT_THAT(text, HasSubstr("\nGPU3   SYS     SYS     SYS     SYS     NODE    PIX\n"));
}

TEST(Describe, ShowsWhatIsWrongWithAPort) {
    Node node = fixture("hwloc-v2-cascade.xml");
    node.hcas[0].open_errno = EACCES;
    node.hcas[0].bond_master = "bond0";
    node.hcas[1].gids.clear();
    node.hcas[1].physical_function = PciAddress{0, 0x46, 0, 0};
    node.gpus[0].link = {16, 8, 32, 16};
    node.gpus[0].mig = {"a", "b"};
    const std::string text = describe(node);
    EXPECT_THAT(text, HasSubstr("in bond bond0  cannot be opened: Permission denied"));
    EXPECT_THAT(text, HasSubstr("no GID  virtual function of 0000:46:00.0"));
    EXPECT_THAT(text, HasSubstr("PCIe 16 GT/s x8 (could run 32 GT/s x16)  2 MIG instance(s)"));
}

TEST(Describe, EverySavedMachineFitsItsLines) {
    for (const auto& file : testing::filesIn(testing::fixtures())) {
        const Node node = testing::mustRead(file);
        const std::string text = describe(node);
        EXPECT_EQ(text.back(), '\n');
        EXPECT_THAT(text, Not(HasSubstr(" \n"))) << file;
        for (const std::string& note : node.notes) EXPECT_THAT(text, HasSubstr("note: " + note));
        for (const Gpu& gpu : node.gpus)
            EXPECT_THAT(text, HasSubstr("GPU" + std::to_string(gpu.index)));
        for (const Hca& hca : node.hcas) EXPECT_THAT(text, HasSubstr(hca.label())) << file;
    }
}

TEST(Describe, EmptyMachine) {
    EXPECT_EQ(describe(Node{}), "0 GPU(s), 0 HCA port(s), 0 NUMA node(s), 0 CPU(s)  [live]\n");
}

}  // namespace
}  // namespace rdmatune
