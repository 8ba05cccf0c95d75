// Devices, limits and links: every finding planted, and its absence without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "tests/unit/gpudirect/doctor_fixture.hpp"
#include "tuner/gpudirect/gdr_judge.hpp"
#include "tuner/gpudirect/gdr_read.hpp"

namespace rdmatune {
namespace {

// nccl#1939: lsmod shows the module, memory_peers has no entry.

// nccl-tests#380: a guest whose NICs have no ATS.

// nccl-tests#206 (8192 KiB) and ucx#8229 (64 KiB).

TEST_F(Doctor, MemlockLow) {
    for (const char* bytes : {"8388608", "65536"}) {
        tree_.file("proc/self/limits", limits(bytes, bytes));
        const Diagnosis diagnosis = run();
        const Finding finding = expect(diagnosis, "memlock-low", Severity::Error);
        EXPECT_NE(finding.admin.find("LimitMEMLOCK=infinity"), std::string::npos);
        EXPECT_NE(finding.what.find(bytes[0] == '8' ? "8 MiB" : "64 KiB"), std::string::npos);
        EXPECT_EQ(own(diagnosis, 0), (GdrPair{0, 0, GdrWay::No, "memlock-low"}));
    }
    tree_.file("proc/self/limits", limits("8388608", "unlimited"));
    EXPECT_NE(expect(run(), "memlock-low", Severity::Warning).user.find("ulimit -l unlimited"),
              std::string::npos);
    tree_.file("proc/self/limits", limits("34359738368", "34359738368"));
    expect(run(), "memlock-low", Severity::Warning);
}

TEST(GdrJudge, HealthCheckAsksWhatSlurmdCanHandOn) {
    GdrFacts facts;
    facts.kernel_release = "5.15.0";
    facts.root = true;
    facts.memlock = MemlockLimit{65536, 65536};
    facts.memlock_slurmd = MemlockLimit{65536, kUnlimited};
    Node node = gdrNode();
    const auto low = [&] {
        const Diagnosis diagnosis = judgeGdr(node, facts);
        return std::ranges::any_of(diagnosis.findings,
                                   [](const Finding& f) { return f.code == "memlock-low"; });
    };
    EXPECT_FALSE(low());
    facts.memlock_slurmd->hard = 8 << 20;
    EXPECT_TRUE(low());
    facts.in_job = true;
    facts.memlock = MemlockLimit{};
    EXPECT_FALSE(low());
}

TEST_F(Doctor, SlurmdIsFoundAmongTheProcesses) {
    tree_.file("proc/1/comm", "systemd\n").file("proc/77/comm", "slurmd\n");
    tree_.file("proc/77/limits", limits("65536", "1048576"));
    const GdrFacts facts = readGdrFacts(node_, tree_.roots());
    ASSERT_TRUE(facts.memlock_slurmd);
    EXPECT_EQ(facts.memlock_slurmd->soft, 65536U);
    EXPECT_EQ(facts.memlock_slurmd->hard, 1048576U);
}

TEST_F(Doctor, VerbsDeviceMissing) {
    remove("dev/infiniband/uverbs1");
    Diagnosis diagnosis = run();
    // As in a pod that was given some of the HCAs: no fault of the node.
    EXPECT_NE(expect(diagnosis, "verbs-missing", Severity::Warning).what.find("mlx5_1"),
              std::string::npos);
    EXPECT_EQ(own(diagnosis, 1), (GdrPair{1, 1, GdrWay::No, "verbs-missing"}));
    EXPECT_EQ(own(diagnosis, 0).way, GdrWay::Dmabuf);
    remove("sys/class/infiniband_verbs");
    EXPECT_EQ(own(run(), 0).because, "verbs-missing");
    expect(run(), "verbs-missing", Severity::Error);
}

TEST(GdrJudge, VerbsDeviceDenied) {
    GdrFacts facts;
    facts.kernel_release = "5.15.0";
    facts.modules = {"nvidia"};
    facts.nvidia_open = true;
    facts.nvidia_version = "550.54";
    facts.verbs["mlx5_0"] = {"/dev/infiniband/uverbs0", EPERM, DmabufProbe::NotTried};
    facts.verbs["mlx5_1"] = {"/dev/infiniband/uverbs1", 0, DmabufProbe::NotTried};
    const Diagnosis diagnosis = judgeGdr(gdrNode(), facts);
    ASSERT_EQ(diagnosis.findings.size(), 1U);
    EXPECT_EQ(diagnosis.findings[0].code, "verbs-denied");
    EXPECT_NE(diagnosis.findings[0].admin.find("cgroup"), std::string::npos);
    EXPECT_EQ(diagnosis.pairs[0].because, "verbs-denied");
    EXPECT_EQ(diagnosis.pairs[1].way, GdrWay::Dmabuf);
}

TEST_F(Doctor, RelaxedOrderingOff) {
    PciConfig hca;
    hca.relaxed_ordering = false;
    configure("0000:24:00.0", hca);
    EXPECT_NE(expect(run(), "relaxed-ordering-off", Severity::Warning).what.find("mlx5_1"),
              std::string::npos);
}

TEST_F(Doctor, NarrowLink) {
    node_.hcas[0].link.width = 8;
    Diagnosis diagnosis = run();
    const Finding finding = expect(diagnosis, "link-narrow", Severity::Warning);
    EXPECT_NE(finding.what.find("mlx5_0: the PCIe link runs 8 lanes wide, both ends can do 16"),
              std::string::npos);
    expect(diagnosis, "link-below-port", Severity::Warning);
    for (PciBridge& bridge : node_.bridges)
        if (bridge.pci == testing::pci("0000:02:01.0")) bridge.link = {32, 8, 32, 8};
    diagnosis = run();
    EXPECT_EQ(find(diagnosis, "link-narrow"), nullptr);
    expect(diagnosis, "link-slot", Severity::Info);
}

TEST_F(Doctor, NarrowGpuAndSwitchLinks) {
    node_.gpus[1].link.width = 4;
    for (PciBridge& bridge : node_.bridges)
        if (bridge.pci == testing::pci("0000:00:01.0") ||
            bridge.pci == testing::pci("0000:01:00.0"))
            bridge.link.width = 8;
    const Diagnosis diagnosis = run();
    std::string all;
    for (const Finding& finding : diagnosis.findings) {
        EXPECT_EQ(finding.code, "link-narrow");
        all += finding.what;
    }
    EXPECT_EQ(diagnosis.findings.size(), 2U);
    EXPECT_NE(all.find("GPU 1 (0000:23:00.0)"), std::string::npos);
    EXPECT_NE(all.find("PCIe switch 0000:01:00.0"), std::string::npos);
}

TEST_F(Doctor, SlowLinkIsAFaultOfAnHcaAndIdlenessOfAGpu) {
    node_.hcas[1].link.speed_gts = 16;
    node_.gpus[0].link.speed_gts = 2.5;
    const Diagnosis diagnosis = run();
    ASSERT_EQ(std::ranges::count(diagnosis.findings, "link-slow", &Finding::code), 2);
    EXPECT_EQ(expect(diagnosis, "link-slow", Severity::Warning).what.substr(0, 6), "mlx5_1");
    EXPECT_EQ(diagnosis.findings.back().severity, Severity::Info);
    expect(diagnosis, "link-below-port", Severity::Warning);
}

TEST_F(Doctor, BridgeOnAnAmdCardSleepsWithItsGpu) {
    // root port and the card's own bridge, both at idle speed
    for (std::size_t i : {0, 1}) {
        node_.bridges[i].link = {2.5, 16, 32, 16};
        node_.bridges[i].vendor_device = "1002:14a0";
    }
    expect(run(), "link-slow", Severity::Info);
    node_.bridges[1].vendor_device = "1000:c030";
    expect(run(), "link-slow", Severity::Warning);
}

TEST_F(Doctor, PortsThatAreDownAreNotJudged) {
    node_.hcas[0].state = PortState::Down;
    node_.hcas[0].link.width = 1;
    remove("dev/infiniband/uverbs0");
    const Diagnosis diagnosis = run();
    EXPECT_EQ(find(diagnosis, "link-narrow"), nullptr);
    EXPECT_EQ(find(diagnosis, "verbs-missing"), nullptr);
    EXPECT_EQ(own(diagnosis, 0).hca, 1);
}

TEST_F(Doctor, FilesThatAreCutOrStrangeAreNoDanger) {
    tree_.file("proc/self/limits", "Max locked memory   nonsense  9 bytes\n")
        .file("proc/driver/nvidia/version", "")
        .file("proc/driver/nvidia/params", ":::\n\n")
        .file("proc/cpuinfo", "flags")
        .file("proc/sys/kernel/osrelease", "rolling\n")
        .file("sys/class/infiniband_verbs/uverbs9/ibdev", "");
    const Diagnosis diagnosis = run();
    EXPECT_EQ(find(diagnosis, "memlock-low"), nullptr);
    EXPECT_NE(expect(diagnosis, "not-visible", Severity::Info).what.find("NVIDIA's driver"),
              std::string::npos);
}

TEST_F(Doctor, NoGpuNoHca) {
    node_ = {};
    tree_.file("proc/self/limits", limits("65536", "65536"));
    const Diagnosis diagnosis = run();
    EXPECT_EQ(find(diagnosis, "memlock-low"), nullptr) << "nothing to register";
    expect(diagnosis, "gpu-none", Severity::Info);
    expect(diagnosis, "hca-none", Severity::Info);
    EXPECT_TRUE(diagnosis.pairs.empty());
}

TEST_F(Doctor, CoherentMachineChecksTheTopology) {
    tree_.file("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n\n");
    tree_.file("proc/driver/nvidia/params", "EnableMSI: 1\nGrdmaPciTopoCheckOverride: 0\n");
    expect(run(), "coherent-topo-check", Severity::Warning);
    tree_.file("proc/driver/nvidia/params", "EnableMSI: 1\nGrdmaPciTopoCheckOverride: 1\n");
    EXPECT_EQ(find(run(), "coherent-topo-check"), nullptr);
}

}  // namespace
}  // namespace rdmatune
