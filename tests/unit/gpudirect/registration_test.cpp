// Can GPU memory be registered: every finding planted, and its absence without it.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/gpudirect/doctor_fixture.hpp"
#include "tuner/gpudirect/gdr_judge.hpp"
#include "tuner/gpudirect/gdr_read.hpp"

namespace rdmatune {
namespace {

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

// S29, NVIDIA/nccl #1939: lsmod shows it, memory_peers does not.
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

TEST_F(Doctor, PeermemLinkedWithIbUverbsIsLinkedToo) {
    noDmabuf();
    tree_.folder("sys/module/nvidia_peermem").folder("sys/module/ib_uverbs/holders/nvidia_peermem");
    expect(run(), "peermem-unproven", Severity::Warning);
    EXPECT_EQ(find(run(), "peermem-unregistered"), nullptr);
}

TEST_F(Doctor, ModelsWithoutGpuDirectRdmaAreNotAFault) {
    noDmabuf();  // no module would mend it, so none is asked for
    for (Gpu& gpu : node_.gpus) gpu.model = "NVIDIA GeForce RTX 4090";
    const Diagnosis diagnosis = run();
    expect(diagnosis, "gpu-without-rdma", Severity::Info);
    EXPECT_EQ(find(diagnosis, "peermem-missing"), nullptr);
    EXPECT_EQ(own(diagnosis, 0).way, GdrWay::No);
    EXPECT_EQ(own(diagnosis, 0).because, "gpu-without-rdma");
    // One of them beside a data-centre GPU: that one is judged as ever.
    node_.gpus[1].model = "NVIDIA H100 PCIe";
    const Diagnosis mixed = run();
    expect(mixed, "peermem-missing", Severity::Error);
    EXPECT_EQ(own(mixed, 1).because, "peermem-missing");
    tree_.file("proc/driver/nvidia/version", testing::kOpenDriver);
    EXPECT_EQ(own(run(), 0).because, "gpu-without-rdma");
    EXPECT_EQ(own(run(), 1).way, GdrWay::Dmabuf);
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

TEST_F(Doctor, GpusWithoutAnHcaNeedNoRegistration) {
    node_.hcas.clear();
    node_.distance.assign(2, {});
    noDmabuf();
    const Diagnosis diagnosis = run();
    ASSERT_EQ(diagnosis.findings.size(), 1U) << diagnosisToJson(diagnosis, node_, 1);
    EXPECT_EQ(diagnosis.findings[0].code, "hca-none");
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

}  // namespace
}  // namespace rdmatune
