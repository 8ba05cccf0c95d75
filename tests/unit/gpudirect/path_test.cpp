// The way between GPU and HCA: every finding planted, and its absence without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/gpudirect/doctor_fixture.hpp"
#include "tuner/gpudirect/gdr_judge.hpp"
#include "tuner/gpudirect/gdr_read.hpp"

namespace rdmatune {
namespace {

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

TEST_F(Doctor, GraceReachesTheHcasOfItsOwnSocket) {
    tree_.file("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n\n");
    node_.distance = {{Distance::Node, Distance::Sys}, {Distance::Sys, Distance::Node}};
    for (Gpu& gpu : node_.gpus) gpu.model = "NVIDIA GH200 480GB";
    EXPECT_EQ(own(run(), 0).way, GdrWay::Dmabuf);
    EXPECT_EQ(find(run(), "gdr-distance"), nullptr);
    EXPECT_TRUE(run().env.empty());
    // A saved topology has no cpuinfo: the name tells.
    remove("proc/cpuinfo");
    EXPECT_EQ(own(run(), 0).way, GdrWay::Dmabuf);
    tree_.file("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n\n");
    // An ordinary card in another Arm server reaches no farther than in any other machine.
    for (Gpu& gpu : node_.gpus) gpu.model = "NVIDIA A100-PCIE-40GB";
    EXPECT_EQ(own(run(), 0).because, "gdr-distance");
    // DGX Spark: one memory for both, and no RDMA to it.
    for (Gpu& gpu : node_.gpus) gpu.model = "NVIDIA GB10";
    EXPECT_EQ(own(run(), 0).because, "gpu-without-rdma");
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

// S31, NVIDIA/nccl-tests #380: passed through to a guest, three HCAs at once lose half.
TEST_F(Doctor, GuestWithoutAtsIsTold) {
    tree_.file("proc/cpuinfo", cpuinfo("GenuineIntel", 6, "fpu hypervisor"));
    PciConfig hca;
    hca.ats = false;
    configure("0000:04:00.0", hca);
    EXPECT_NE(expect(run(), "virtualised", Severity::Info).what.find("ATS is off on mlx5_0"),
              std::string::npos);
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
