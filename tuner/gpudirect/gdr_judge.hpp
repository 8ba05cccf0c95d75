// From what was read to what it means: pure, so that every finding can be planted in a test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuner/gpudirect/finding.hpp"
#include "tuner/gpudirect/gdr_facts.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

/// Judges a node. Facts that are absent are named in a finding "not-visible" and decide nothing.
[[nodiscard]] Diagnosis judgeGdr(const Node& node, const GdrFacts& facts);

/// The parts of it, in the order in which they are asked.
namespace gdr {

struct Way {
    GdrWay way = GdrWay::Unknown;
    std::string because;  ///< code, for No and Unknown
};

/// How GPU memory of one vendor can be registered with the HCAs of this node.
struct Registration {
    std::string vendor;
    Way fallback;            ///< for an HCA that takes no DMA-BUF
    bool dmabuf = false;     ///< driver and kernel export it; HCAs may still refuse
    bool needs_env = false;  ///< the library must be told to use DMA-BUF
    [[nodiscard]] Way of(const VerbsFacts* hca) const;
};

using Findings = std::vector<Finding>;

/// The GPU's driver, nvidia_peermem, DMA-BUF. Adds findings only where some HCA is left without a
/// way.
[[nodiscard]] Registration judgeRegistration(const Node& node, const GdrFacts& facts,
                                             std::string_view vendor, Findings& findings);

/// Ports that are passed between a GPU and an HCA below the bridge that both share; empty when
/// they share none, and then the way leads through the host bridge anyway.
[[nodiscard]] std::vector<PciAddress> portsBetween(const Gpu& gpu, const Hca& hca);

/// A port that sends packets between two devices up to the root complex.
[[nodiscard]] bool redirects(const PciFacts& port, const PciFacts* hca);

/// Whether the HCA can carry a job's traffic as far as the Node tells.
[[nodiscard]] bool usable(const Hca& hca);

/// A GPU that is part of a Grace superchip by its model's name; also one without a name.
[[nodiscard]] bool onGrace(const Gpu& gpu);

/// GPUs of which NVIDIA says that they have no GPUDirect RDMA: it is for data-centre and
/// workstation GPUs ("Developing a Linux Kernel Module using GPUDirect RDMA", 1), and DGX Spark's
/// FAQ rules out nvidia_peermem and DMA-BUF on GB10, whose memory is the CPU's.
[[nodiscard]] bool withoutRdma(const Gpu& gpu);

/// The locked-memory limit that counts here, when it is too low for any registration.
[[nodiscard]] bool memlockStops(const GdrFacts& facts);

/// Device files, limits, PCIe links, ordering, virtual machines: what concerns no single pair.
void judgeDevices(const Node& node, const GdrFacts& facts, Findings& findings);
void judgeLinks(const Node& node, Findings& findings);

[[nodiscard]] const PciFacts* find(const GdrFacts& facts, const std::optional<PciAddress>& address);
[[nodiscard]] const VerbsFacts* findVerbs(const GdrFacts& facts, const Hca& hca);

/// "GPU 0 (0000:1b:00.0)"
[[nodiscard]] std::string gpuName(const Gpu& gpu);
/// "a", "a and b", "a, b and c"; beyond six: "a, b, c, d, e, f and 3 more"
[[nodiscard]] std::string listed(const std::vector<std::string>& names);

}  // namespace gdr
}  // namespace rdmatune
