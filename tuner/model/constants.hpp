// NCCL's own constants, as far as the model needs them, and what they stand for.
#pragma once

#include "tuner/model/types.hpp"
#include "tuner/model/units.hpp"

namespace rdmatune::model {

/// The one-way latency of a small message on the InfiniBand that NCCL's network constants describe,
/// in ns.
///
/// NCCL never measures the network. What a network adds to that InfiniBand is what counts (the
/// `latency` property of its net plugins means the same: nccl PR#625). Published for such adapters:
/// 0.82 us for 32 B between two hosts (ib_send_lat, RC, half of a round trip; D. Potter's master's
/// thesis, git.dennispotter.eu/Dennis/masters-thesis, tables/mtu_performance.tex). A switch adds
/// about 0.1 us (Cornelis, documentation of CN5000: below 100 ns a hop; of NVIDIA's no measured
/// figure was found). With one or two switches: about 1.0 us. A mistake of 0.2 us is worth 0.4 us
/// for each further node of a ring: far below what decides.
inline constexpr std::int64_t kReferenceAlphaNs = 1000;

/// The share of a rail's link rate that a healthy rail carries as payload, in 1/1000: a measured
/// beta at or above it changes no price. NCCL's maintainer counts 24 GB/s for 200 Gbit/s
/// (nccl-tests#119), as NCCL's own rings do; ib_write_bw reports 96.6 of 100 Gbit/s (EDR, NVIDIA
/// developer forum 273376) and 392 of 400 (RoCE, nccl#2409).
inline constexpr std::uint64_t kHealthyShare = 960;

/// LL is never newly chosen above this size (see kLargestPinnedLl), except that a ring cuts the
/// message into one piece for each rank: there each piece may have kLlRingPiece.
inline constexpr std::uint64_t kLlLargest = 256 * 1024;
inline constexpr std::uint64_t kLlRingPiece = 32 * 1024;
/// LL128 spends 1/16 of the bandwidth on flags, and its kernels carry less than Simple's: the same
/// guard, with more room (public tunings of large clusters use it up to about 200 MB).
inline constexpr std::uint64_t kLl128Largest = 64 * 1024 * 1024;
inline constexpr std::uint64_t kLl128RingPiece = 4 * 1024 * 1024;

/// Where a step between nodes takes so much more (or less) than the reference, in ns, or where a
/// byte takes a quarter longer, NCCL's table is one of another network: from there on ring and tree
/// are priced by the model alone. In between, the model's part grows with the distance. 4 us are
/// what NCCL itself counts for a whole step of a ring with LL128 (kDefaultLatencies), the
/// InfiniBand included.
inline constexpr std::int64_t kFarAlphaNs = 4000;
inline constexpr std::uint64_t kFarRateParts = 4;  // one part in so many

/// NCCL's own choice among ring and tree stays unless another is better by one part in so many (6
/// %): about the error of the closed form against the simulator (tests/model).
inline constexpr Ticks kClearlyBetter = 16;

/// NCCL lowers tree's bandwidth for middle sizes, 1/10, by powers of two from 64 bytes: its
/// stand-in for filling a pipeline. Every second value is what its recorded tables show; those
/// between are the mean of their neighbours or one of them.
inline constexpr int kTreeShares = 25;
inline constexpr std::uint8_t kTreeShare[kProtocols][kTreeShares] = {
    {10, 10, 10, 10, 9, 8, 7, 7, 7, 7, 6, 5, 4, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 10, 10},
    {10, 10, 10, 10, 10, 9, 8, 8, 8, 7, 6, 6, 6, 6, 6, 7, 8, 9, 9, 9, 9, 10, 10, 10, 10},
    {9, 9, 9, 9, 9, 9, 9, 8, 7, 6, 6, 5, 5, 5, 5, 6, 7, 7, 7, 7, 8, 8, 9, 9, 10}};
/// Its value for messages from 2^octave bytes to the next power of two.
[[nodiscard]] constexpr std::uint64_t treeShare(int protocol, int octave) {
    const int step = octave < 6 ? 0 : octave - 6;
    return kTreeShare[protocol][step < kTreeShares ? step : kTreeShares - 1];
}
/// What NCCL's formula lets a tree carry of the network's bandwidth, 1/1000: 92 %, of that 10/38
/// with LL and 120/128 with LL128, and 15 % less where it builds the plain tree pattern.
inline constexpr std::uint64_t kTreeOfNetwork[kProtocols] = {242, 862, 920};
inline constexpr std::uint64_t kPlainTree = 850;
inline constexpr std::uint32_t kPlainTreeRails = 8;

/// Latencies of tree and ring in ticks: [Algorithm::Tree or ::Ring][Protocol].
struct LatencyTable {
    Ticks base[2][kProtocols];
    Ticks intra[2][kProtocols];  ///< one step inside a node
    Ticks inter[2][kProtocols];  ///< one step between nodes
    /// What a host needs to post one step of a ring that leaves the node; three times that for
    /// Simple.
    Ticks post;
};

/// NCCL's figures for posting, by the maker of the CPU. Where it is not known, Intel's (the
/// smaller) is used.
inline constexpr Ticks kPostIntel = ticksFromNs(1000);
inline constexpr Ticks kPostAmd = ticksFromNs(2000);

/// NCCL 2.28's defaults (baseLatencies, hwLatencies[NVLink], hwLatencies[network]), seen through
/// the v5 interface. Older versions differ only where the price is far from winning (tree with
/// Simple).
inline constexpr LatencyTable kDefaultLatencies = {
    {{ticksFromNs(6800), ticksFromNs(14000), ticksFromNs(8400)},
     {ticksFromNs(6600), ticksFromNs(14000), ticksFromNs(8400)}},
    {{ticksFromNs(600), ticksFromNs(1250), ticksFromNs(4000)},
     {ticksFromNs(600), ticksFromNs(1900), ticksFromNs(3400)}},
    {{ticksFromNs(5000), ticksFromNs(8500), ticksFromNs(14000)},
     {ticksFromNs(2700), ticksFromNs(4000), ticksFromNs(14000)}},
    kPostIntel};

/// hwLatencies[PCI]: steps inside a node without NVLink.
inline constexpr Ticks kPciIntra[2][kProtocols] = {
    {ticksFromNs(1000), ticksFromNs(1900), ticksFromNs(4000)},
    {ticksFromNs(1000), ticksFromNs(2500), ticksFromNs(5700)}};

}  // namespace rdmatune::model
