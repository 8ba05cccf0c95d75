// FabricProfile: how fast this job's network is. The value that travels from srun to every rank;
// one line of text. This room is used inside NCCL: no allocation, no exceptions, nothing of the
// C++ runtime library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdmatune {

/// Longest text of a profile, terminating zero included.
inline constexpr std::size_t kProfileTextMax = 2048;
inline constexpr std::size_t kProfileHostMax = 64;
inline constexpr std::size_t kProfileRulesMax = 1024;
inline constexpr std::size_t kProfileMaxRails = 32;

enum class ProfileTransport : std::uint8_t { Tcp = 0, InfiniBand = 1, Roce = 2 };
/// How GPU memory was reached while measuring.
enum class ProfileGdr : std::uint8_t { NotTried = 0, No = 1, Dmabuf = 2, Peermem = 3 };

/// alpha and beta of one pattern under its own load (all nodes at once).
struct PatternFigures {
    std::uint32_t alpha_ns =
        0;  ///< one-way latency of a small message, median edge; 0: not measured
    std::uint32_t alpha_worst_ns = 0;  ///< the worst edge's
    std::uint32_t beta_mbps =
        0;  ///< 10^6 bytes/s of a node over all its rails, median edge; 0: not measured
    std::uint32_t beta_worst_mbps = 0;  ///< the worst edge's
    bool operator==(const PatternFigures&) const = default;
};

/// All figures are whole numbers, so that two machines cannot round them differently.
struct FabricProfile {
    std::uint32_t nodes = 0;           ///< nodes of the step
    std::uint32_t nodes_measured = 0;  ///< less than `nodes` when a sample was measured
    ProfileTransport transport = ProfileTransport::Tcp;
    ProfileGdr gdr = ProfileGdr::NotTried;
    std::uint32_t rails = 0;      ///< usable HCAs per node (TCP: 1)
    std::uint32_t rail_mbps = 0;  ///< one rail alone, median, 10^6 bytes/s; 0: not measured
    std::uint32_t rail_nominal_mbps =
        0;  ///< one rail's link rate (what NCCL believes), 10^6 bytes/s; 0: not known
    PatternFigures ring;
    PatternFigures tree;
    bool complete = false;                 ///< false: the time budget cut the measurement
    bool neutral = false;                  ///< by hand: change no choice of NCCL's
    char slow_node[kProfileHostMax] = {};  ///< a node far from the others, or empty
    char rules[kProfileRulesMax] =
        {};  ///< the site's pinned choices in their compact form, or empty
    bool operator==(const FabricProfile&) const = default;
};

/// Why a text is not a profile.
enum class ProfileError : std::uint8_t {
    None = 0,
    TooLong,
    NotAProfile,  ///< does not begin with the magic word
    Version,      ///< made by a newer rdma-tune
    Checksum,
    Field  ///< a field is missing, repeated, malformed or out of range
};
/// A fixed English phrase, such as "checksum does not match".
[[nodiscard]] const char* describe(ProfileError error);

/// Reads a profile's text: zero-terminated, and of several lines the first. On failure `out` is
/// untouched.
[[nodiscard]] ProfileError parseProfile(const char* text, FabricProfile& out);

/// Writes the text with its checksum, zero-terminated, into `out`. Returns its length, or 0 when
/// it does not fit (rules too long) or a field cannot be written.
[[nodiscard]] std::size_t formatProfile(const FabricProfile& profile, char* out, std::size_t size);

}  // namespace rdmatune
