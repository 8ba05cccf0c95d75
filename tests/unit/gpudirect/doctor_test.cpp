// Every finding planted in a tree of files, and its absence on the same tree without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "tests/unit/support/gdr_machine.hpp"
#include "tuner/gpudirect/finding.hpp"
#include "tuner/gpudirect/gdr_judge.hpp"
#include "tuner/gpudirect/gdr_read.hpp"

namespace rdmatune {
namespace {

using testing::cpuinfo;
using testing::FakeTree;
using testing::gdrNode;
using testing::limits;
using testing::PciConfig;
using testing::writeHealthy;

class Doctor : public ::testing::Test {
  protected:
    Doctor() { writeHealthy(tree_, node_); }

    Diagnosis run() const { return diagnose(node_, tree_.roots()); }
    static const Finding* find(const Diagnosis& diagnosis, const std::string& code) {
        for (const Finding& finding : diagnosis.findings)
            if (finding.code == code) return &finding;
        return nullptr;
    }
    /// The finding, with a remedy for somebody; fails the test when it is not there.
    static Finding expect(const Diagnosis& diagnosis, const std::string& code, Severity severity) {
        const Finding* found = find(diagnosis, code);
        if (found == nullptr) {
            ADD_FAILURE() << "no finding " << code << " in " << diagnosisToJson(diagnosis, {}, 1);
            return {};
        }
        EXPECT_EQ(found->severity, severity) << found->what;
        EXPECT_FALSE(found->what.empty());
        return *found;
    }
    static std::string setting(const Diagnosis& diagnosis, const std::string& name) {
        for (const auto& entry : diagnosis.env)
            if (entry.name == name) return entry.value;
        return "";
    }
    static GdrPair own(const Diagnosis& diagnosis, int gpu) {
        for (const GdrPair& pair : diagnosis.pairs)
            if (pair.gpu == gpu) return pair;
        return {};
    }
    void remove(const std::string& path) { std::filesystem::remove_all(tree_.path(path)); }
    void configure(const char* address, const PciConfig& config) {
        tree_.file(std::string("sys/bus/pci/devices/") + address + "/config", config.bytes());
    }
    void noDmabuf() { tree_.file("proc/driver/nvidia/version", testing::kClosedDriver); }

    FakeTree tree_;
    Node node_ = gdrNode();
};

TEST_F(Doctor, HealthyNodeHasNothingToSay) {
    const Diagnosis diagnosis = run();
    EXPECT_TRUE(diagnosis.findings.empty()) << diagnosisToJson(diagnosis, node_, 1);
    EXPECT_TRUE(diagnosis.env.empty());
    ASSERT_EQ(diagnosis.pairs.size(), 2U);
    EXPECT_EQ(diagnosis.pairs[0], (GdrPair{0, 0, GdrWay::Dmabuf, ""}));
    EXPECT_EQ(diagnosis.pairs[1], (GdrPair{1, 1, GdrWay::Dmabuf, ""}));
}

TEST_F(Doctor, PeermemRegisteredIsHealthyToo) {
    noDmabuf();
    tree_.file("sys/module/nvidia_peermem/version");
    for (const char* folder : {"kernel/mm/memory_peers/nv_mem", "kernel/memory_peers/nv_mem_nc"}) {
        tree_.file(std::string("sys/") + folder + "/version", "1.0\n");
        const Diagnosis diagnosis = run();
        EXPECT_TRUE(diagnosis.findings.empty()) << diagnosisToJson(diagnosis, node_, 1);
        EXPECT_EQ(own(diagnosis, 0).way, GdrWay::Peermem) << folder;
        remove("sys/kernel");
    }
}

TEST_F(Doctor, PeermemMissing) {
    noDmabuf();
    const Diagnosis diagnosis = run();
    const Finding finding = expect(diagnosis, "peermem-missing", Severity::Error);
    EXPECT_NE(finding.admin.find("modprobe nvidia_peermem"), std::string::npos);
    expect(diagnosis, "driver-closed", Severity::Warning);
    EXPECT_EQ(own(diagnosis, 0), (GdrPair{0, 0, GdrWay::No, "peermem-missing"}));
    EXPECT_TRUE(diagnosis.env.empty());
}

// nccl#1939: lsmod shows the module, memory_peers has no entry.
TEST_F(Doctor, PeermemLoadedButNotRegistered) {
    noDmabuf();
    tree_.file("sys/module/nvidia_peermem/version");
    const Diagnosis diagnosis = run();
    expect(diagnosis, "peermem-unregistered", Severity::Error);
    EXPECT_EQ(own(diagnosis, 1), (GdrPair{1, 1, GdrWay::No, "peermem-unregistered"}));
    EXPECT_EQ(setting(diagnosis, "NCCL_NET_GDR_LEVEL"), "LOC");
}

TEST_F(Doctor, PeermemLinkedWithIbCoreIsLeftOpen) {
    noDmabuf();
    tree_.file("sys/module/nvidia_peermem/version");
    tree_.folder("sys/module/ib_core/holders/nvidia_peermem");
    const Diagnosis diagnosis = run();
    expect(diagnosis, "peermem-unproven", Severity::Warning);
    EXPECT_EQ(find(diagnosis, "peermem-unregistered"), nullptr);
    EXPECT_EQ(own(diagnosis, 0), (GdrPair{0, 0, GdrWay::Unknown, "peermem-unproven"}));
    EXPECT_TRUE(diagnosis.env.empty());
}

TEST_F(Doctor, UnregisteredPeermemDoesNotMatterBesideDmabuf) {
    tree_.file("sys/module/nvidia_peermem/version");
    EXPECT_TRUE(run().findings.empty());
}

TEST_F(Doctor, KernelTooOldForDmabuf) {
    tree_.file("proc/sys/kernel/osrelease", "5.11.22-rt\n");
    const Diagnosis diagnosis = run();
    EXPECT_NE(expect(diagnosis, "kernel-old", Severity::Warning).what.find("5.11.22-rt"),
              std::string::npos);
    EXPECT_EQ(own(diagnosis, 0).because, "peermem-missing");
    tree_.file("proc/sys/kernel/osrelease", "5.12.0\n");
    EXPECT_EQ(find(run(), "kernel-old"), nullptr);
}

TEST_F(Doctor, DriverTooOld) {
    tree_.file("proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX x86_64 Kernel Module  450.80.02  Wed Sep 23 2020\n");
    Diagnosis diagnosis = run();
    expect(diagnosis, "driver-old", Severity::Error);
    EXPECT_EQ(own(diagnosis, 0), (GdrPair{0, 0, GdrWay::No, "driver-old"}));
    tree_.file("proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX x86_64 Kernel Module  510.47.03  Mon Jan 24 2022\n");
    diagnosis = run();
    expect(diagnosis, "driver-old", Severity::Warning);
    expect(diagnosis, "peermem-missing", Severity::Error);
}

TEST_F(Doctor, DriverMissing) {
    remove("proc/driver");
    remove("sys/module/nvidia");
    const Diagnosis diagnosis = run();
    expect(diagnosis, "driver-missing", Severity::Error);
    expect(diagnosis, "peermem-missing", Severity::Error);
    EXPECT_EQ(own(diagnosis, 0), (GdrPair{0, 0, GdrWay::No, "driver-missing"}));
}

TEST_F(Doctor, Nouveau) {
    remove("proc/driver");
    remove("sys/module/nvidia");
    tree_.folder("sys/module/nouveau");
    for (const char* gpu : {"0000:03:00.0", "0000:23:00.0"}) {
        const std::string driver = std::string("sys/bus/pci/devices/") + gpu + "/driver";
        remove(driver);
        tree_.link(driver, "../../drivers/nouveau");
    }
    const Diagnosis diagnosis = run();
    EXPECT_NE(expect(diagnosis, "driver-nouveau", Severity::Error).what.find("0000:23:00.0"),
              std::string::npos);
    EXPECT_EQ(own(diagnosis, 0).because, "driver-nouveau");
}

TEST_F(Doctor, GpuSetAsideForAVirtualMachine) {
    remove("sys/bus/pci/devices/0000:03:00.0/driver");
    tree_.link("sys/bus/pci/devices/0000:03:00.0/driver", "../../drivers/vfio-pci");
    expect(run(), "driver-vfio", Severity::Error);
}

TEST_F(Doctor, AcsRedirectNamesThePortAndTheBits) {
    PciConfig port;
    port.acs = 0x001d;
    configure("0000:02:01.0", port);
    const Diagnosis diagnosis = run();
    const Finding finding = expect(diagnosis, "acs-redirect", Severity::Error);
    EXPECT_NE(finding.what.find("0000:02:01.0"), std::string::npos);
    EXPECT_NE(finding.what.find("ReqRedir+ CmpltRedir+"), std::string::npos);
    EXPECT_NE(finding.what.find("GPU 0 - mlx5_0"), std::string::npos);
    EXPECT_NE(finding.admin.find("setpci -s 0000:02:01.0"), std::string::npos);
    EXPECT_EQ(own(diagnosis, 0), (GdrPair{0, 0, GdrWay::No, "acs-redirect"}));
    EXPECT_EQ(own(diagnosis, 1).way, GdrWay::Dmabuf);
    EXPECT_TRUE(diagnosis.env.empty()) << "one pair of equal distance is clean: no level fits both";
}

TEST_F(Doctor, AcsElsewhereDoesNotMatter) {
    PciConfig port;
    port.acs = 0x001d;
    configure("0000:00:01.0", port);  // root port and upstream port are above the way
    configure("0000:01:00.0", port);
    PciConfig validation;
    validation.acs = kAcsSourceValidation;
    configure("0000:02:01.0", validation);
    EXPECT_TRUE(run().findings.empty());
}

TEST_F(Doctor, AcsOnEveryWayTakesGpuDirectOff) {
    PciConfig port;
    port.acs = 0x001d;
    configure("0000:02:00.0", port);
    configure("0000:22:00.0", port);
    EXPECT_EQ(setting(run(), "NCCL_NET_GDR_LEVEL"), "LOC");
    tree_.file("proc/cpuinfo", cpuinfo("AuthenticAMD", 25));
    EXPECT_TRUE(run().env.empty()) << "AMD's host bridge is a good switch";
    tree_.file("proc/cpuinfo", cpuinfo("GenuineIntel", 6, "fpu hypervisor"));
    EXPECT_TRUE(run().env.empty()) << "the ports of a guest are not the real ones";
}

TEST_F(Doctor, AcsOnWaysOverSeveralSwitchesLimitsTheLevel) {
    node_.hcas[1] = node_.hcas[0];
    node_.hcas[1].name = "mlx5_9";
    node_.hcas[1].pci = testing::pci("0000:06:00.0");
    node_.hcas[1].pci_path.push_back(testing::pci("0000:05:00.0"));
    node_.gpus.resize(1);
    node_.distance = {{Distance::Pix, Distance::Pxb}};
    PciConfig port;
    port.acs = 0x001d;
    configure("0000:05:00.0", port);
    const Diagnosis diagnosis = run();
    EXPECT_EQ(setting(diagnosis, "NCCL_NET_GDR_LEVEL"), "PIX");
    EXPECT_EQ(own(diagnosis, 0).way, GdrWay::Dmabuf);
}

TEST_F(Doctor, AcsWithTranslatedRequestsIsFine) {
    PciConfig port;
    port.acs = 0x005d;  // DirectTrans+
    configure("0000:02:01.0", port);
    PciConfig hca;
    hca.ats = false;
    configure("0000:04:00.0", hca);
    expect(run(), "acs-redirect", Severity::Error);
    hca.ats = true;
    configure("0000:04:00.0", hca);
    EXPECT_EQ(find(run(), "acs-redirect"), nullptr);
}

TEST_F(Doctor, OrdinaryUserIsToldWhatWasNotSeen) {
    PciConfig port;
    port.acs = 0x001d;
    tree_.file("sys/bus/pci/devices/0000:02:01.0/config", port.bytes().substr(0, 64));
    const Diagnosis diagnosis = run();
    const Finding finding = expect(diagnosis, "not-visible", Severity::Info);
    EXPECT_NE(finding.what.find("1 devices"), std::string::npos) << finding.what;
    EXPECT_NE(finding.admin.find("as root"), std::string::npos);
    EXPECT_EQ(find(diagnosis, "acs-redirect"), nullptr);
}

TEST_F(Doctor, IommuTranslating) {
    for (const char* type : {"DMA", "DMA-FQ"}) {
        tree_.file("sys/bus/pci/devices/0000:24:00.0/iommu_group/type", std::string(type) + "\n");
        const Diagnosis diagnosis = run();
        const Finding finding = expect(diagnosis, "iommu-translating", Severity::Error);
        EXPECT_NE(finding.admin.find("iommu=pt is on"), std::string::npos);
        EXPECT_NE(finding.what.find("mlx5_1"), std::string::npos);
        EXPECT_EQ(finding.what.find("mlx5_0"), std::string::npos);
        EXPECT_EQ(own(diagnosis, 1), (GdrPair{1, 1, GdrWay::No, "iommu-translating"}));
        EXPECT_EQ(own(diagnosis, 0).way, GdrWay::Dmabuf);
        EXPECT_TRUE(diagnosis.env.empty());
    }
    tree_.file("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n\n");
    EXPECT_EQ(find(run(), "iommu-translating"), nullptr) << "Grace translates by design";
}

TEST_F(Doctor, DistanceBeyondNccl) {
    node_.distance = {{Distance::Node, Distance::Sys}, {Distance::Sys, Distance::Sys}};
    const Diagnosis diagnosis = run();
    expect(diagnosis, "gdr-distance", Severity::Info);
    EXPECT_EQ(own(diagnosis, 0), (GdrPair{0, 0, GdrWay::No, "gdr-distance"}));
    EXPECT_EQ(own(diagnosis, 1).because, "gdr-distance");
    EXPECT_TRUE(diagnosis.env.empty());
}

TEST_F(Doctor, HostBridgeOfAnAmdCpuIsUsed) {
    node_.distance = {{Distance::Phb, Distance::Sys}, {Distance::Sys, Distance::Phb}};
    Diagnosis diagnosis = run();
    EXPECT_TRUE(diagnosis.env.empty()) << "not on Intel";
    EXPECT_EQ(own(diagnosis, 0).because, "gdr-distance");
    tree_.file("proc/cpuinfo", cpuinfo("AuthenticAMD", 25));
    diagnosis = run();
    EXPECT_EQ(setting(diagnosis, "NCCL_NET_GDR_LEVEL"), "PHB");
    EXPECT_EQ(own(diagnosis, 0).way, GdrWay::Dmabuf);
    EXPECT_EQ(find(diagnosis, "gdr-distance"), nullptr);
    noDmabuf();
    EXPECT_EQ(setting(run(), "NCCL_NET_GDR_LEVEL"), "") << "never against a finding";
    tree_.file("proc/driver/nvidia/version", testing::kOpenDriver);
    node_.distance[1][1] = Distance::Pix;
    EXPECT_TRUE(run().env.empty()) << "only where no GPU has a nearer HCA";
}

TEST_F(Doctor, FlatVirtualMachine) {
    node_.flat = true;
    node_.distance = {{Distance::Phb, Distance::Phb}, {Distance::Phb, Distance::Phb}};
    tree_.file("proc/cpuinfo", cpuinfo("AuthenticAMD", 25, "fpu hypervisor"));
    const Diagnosis diagnosis = run();
    expect(diagnosis, "topology-flat", Severity::Warning);
    expect(diagnosis, "virtualised", Severity::Info);
    EXPECT_EQ(own(diagnosis, 0).because, "topology-flat");
    EXPECT_TRUE(diagnosis.env.empty());
}

// nccl-tests#380: a guest whose NICs have no ATS.
TEST_F(Doctor, GuestWithoutAtsIsTold) {
    tree_.file("proc/cpuinfo", cpuinfo("GenuineIntel", 6, "fpu hypervisor"));
    PciConfig hca;
    hca.ats = false;
    configure("0000:04:00.0", hca);
    EXPECT_NE(expect(run(), "virtualised", Severity::Info).what.find("ATS is off on mlx5_0"),
              std::string::npos);
}

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
    EXPECT_NE(expect(diagnosis, "verbs-missing", Severity::Error).what.find("mlx5_1"),
              std::string::npos);
    EXPECT_EQ(own(diagnosis, 1), (GdrPair{1, 1, GdrWay::No, "verbs-missing"}));
    EXPECT_EQ(own(diagnosis, 0).way, GdrWay::Dmabuf);
    remove("sys/class/infiniband_verbs");
    EXPECT_EQ(own(run(), 0).because, "verbs-missing");
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

TEST(GdrJudge, HcaThatRefusesDmabufFallsBack) {
    GdrFacts facts;
    facts.kernel_release = "5.15.0";
    facts.modules = {"nvidia", "nvidia_peermem"};
    facts.nvidia_open = true;
    facts.nvidia_version = "550.54";
    facts.verbs["mlx5_0"] = {"/dev/infiniband/uverbs0", 0, DmabufProbe::NotSupported};
    facts.verbs["mlx5_1"] = {"/dev/infiniband/uverbs1", 0, DmabufProbe::Supported};
    facts.memory_peers = {"nv_mem"};
    Diagnosis diagnosis = judgeGdr(gdrNode(), facts);
    EXPECT_TRUE(diagnosis.findings.empty());
    EXPECT_EQ(diagnosis.pairs[0].way, GdrWay::Peermem);
    EXPECT_EQ(diagnosis.pairs[1].way, GdrWay::Dmabuf);
    facts.memory_peers.clear();
    facts.modules.erase("nvidia_peermem");
    diagnosis = judgeGdr(gdrNode(), facts);
    ASSERT_EQ(diagnosis.findings.size(), 2U);
    EXPECT_EQ(diagnosis.findings[0].code, "peermem-missing");
    EXPECT_EQ(diagnosis.findings[1].code, "dmabuf-hca");
    EXPECT_EQ(diagnosis.pairs[0].way, GdrWay::No);
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

TEST_F(Doctor, GpusWithoutAnHcaNeedNoRegistration) {
    node_.hcas.clear();
    node_.distance.assign(2, {});
    noDmabuf();
    const Diagnosis diagnosis = run();
    ASSERT_EQ(diagnosis.findings.size(), 1U) << diagnosisToJson(diagnosis, node_, 1);
    EXPECT_EQ(diagnosis.findings[0].code, "hca-none");
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

class AmdDoctor : public Doctor {
  protected:
    AmdDoctor() {
        for (Gpu& gpu : node_.gpus) gpu.vendor = "amd";
        tree_.folder("sys/module/amdgpu");
    }
};

TEST_F(AmdDoctor, PeerMemory) {
    tree_.file("sys/kernel/mm/memory_peers/amdkfd/version", "1.0\n");
    const Diagnosis diagnosis = run();
    EXPECT_TRUE(diagnosis.findings.empty());
    EXPECT_EQ(own(diagnosis, 0).way, GdrWay::Peermem);
}

TEST_F(AmdDoctor, PeerMemoryOfTheKernel) {
    tree_.file("proc/kallsyms",
               "0000000000000000 T ib_register_client\t[ib_core]\n"
               "0000000000000000 T ib_register_peer_memory_client\t[ib_core]\n");
    EXPECT_EQ(own(run(), 0).way, GdrWay::Peermem);
    tree_.file("proc/kallsyms",
               "0000000000000000 T my_ib_register_peer_memory_client\n"
               "0000000000000000 T ib_register_peer_memory_client_v2\n");
    EXPECT_EQ(own(run(), 0).way, GdrWay::Unknown);
}

TEST_F(AmdDoctor, DmabufMustBeAskedFor) {
    tree_.file("boot/config-5.15.0-91-generic",
               "CONFIG_PCI_P2PDMA=y\nCONFIG_DMABUF_MOVE_NOTIFY=y\n");
    const Diagnosis diagnosis = run();
    EXPECT_TRUE(diagnosis.findings.empty());
    EXPECT_EQ(own(diagnosis, 0).way, GdrWay::Dmabuf);
    EXPECT_EQ(setting(diagnosis, "NCCL_DMABUF_ENABLE"), "1");
}

TEST_F(AmdDoctor, KernelConfigurationForbids) {
    tree_.file("boot/config-5.15.0-91-generic",
               "CONFIG_PCI_P2PDMA=y\n# CONFIG_DMABUF_MOVE_NOTIFY is not set\n");
    const Diagnosis diagnosis = run();
    expect(diagnosis, "amd-kernel-config", Severity::Error);
    EXPECT_EQ(own(diagnosis, 0).way, GdrWay::No);
}

TEST_F(AmdDoctor, UnknownIsSaidToBeUnknown) {
    const Diagnosis diagnosis = run();
    expect(diagnosis, "amd-unknown", Severity::Info);
    EXPECT_EQ(own(diagnosis, 0), (GdrPair{0, 0, GdrWay::Unknown, "amd-unknown"}));
    remove("sys/module/amdgpu");
    expect(run(), "driver-missing", Severity::Error);
}

TEST_F(Doctor, UnknownVendor) {
    for (Gpu& gpu : node_.gpus) gpu.vendor = "intel";
    const Diagnosis diagnosis = run();
    expect(diagnosis, "vendor-unknown", Severity::Info);
    EXPECT_EQ(own(diagnosis, 0).way, GdrWay::Unknown);
}

TEST(GdrJudge, SavedTopologyDecidesNothingThatItDoesNotTell) {
    const Diagnosis diagnosis = judgeGdr(gdrNode(), GdrFacts{});
    ASSERT_EQ(diagnosis.findings.size(), 1U);
    EXPECT_EQ(diagnosis.findings[0].code, "not-visible");
    ASSERT_EQ(diagnosis.pairs.size(), 2U);
    EXPECT_EQ(diagnosis.pairs[0], (GdrPair{0, 0, GdrWay::Unknown, "not-visible"}));
    EXPECT_TRUE(diagnosis.env.empty());
}

TEST_F(Doctor, JsonSurvivesTheRoundTrip) {
    noDmabuf();
    PciConfig port;
    port.acs = 0x001d;
    configure("0000:02:00.0", port);
    node_.hcas[0].link.width = 8;
    const Diagnosis diagnosis = run();
    ASSERT_GE(diagnosis.findings.size(), 3U);
    EXPECT_TRUE(
        std::ranges::is_sorted(diagnosis.findings, std::ranges::greater{}, &Finding::severity));
    const auto back = diagnosisFromJson(diagnosisToJson(diagnosis, node_), "test");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back.value(), diagnosis);
    EXPECT_FALSE(diagnosisFromJson("{\"findings\":3}", "x.json"));
    EXPECT_NE(diagnosisFromJson("nonsense", "x.json").error().message.find("x.json"),
              std::string::npos);
}

}  // namespace
}  // namespace rdmatune
