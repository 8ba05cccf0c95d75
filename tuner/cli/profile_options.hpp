// A profile by hand, from options: shared by `profile make` and `explain`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tuner/base/result.hpp"
#include "tuner/profile/profile.hpp"

namespace rdmatune::cli {

/// What a user can say of a network. Latencies in us, bandwidths in GB/s of one rail; 0: not given.
struct ProfileOptions {
    std::uint32_t nodes = 0;
    std::uint32_t rails = 0;
    double alpha_us = 0;
    double beta_gbs = 0;
    double nominal_gbs = 0;  ///< 0: the next usual link rate above beta
    double alpha_worst_us = 0;
    double beta_worst_gbs = 0;
    double tree_alpha_us = 0;  ///< 0: as ring
    double tree_beta_gbs = 0;
    std::string network = "ib";
    std::vector<std::string> rules;
    bool neutral = false;

    /// Adds the options that describe the network; `nodes` and `rails` are the caller's own.
    void add(CLI::App& app);
    /// The profile, or what is wrong with the figures.
    [[nodiscard]] Result<FabricProfile> profile() const;
};

/// The usual link rate (GB/s of payload bits, 10 to 800 Gbit/s) that a rail of this bandwidth has.
[[nodiscard]] double usualLinkRate(double beta_gbs);

/// Reads a profile's text, with an error that says what to do.
[[nodiscard]] Result<FabricProfile> readProfileText(const std::string& text);

/// The profile of the environment (RDMA_TUNE_PROFILE, or what srun holds ready for its tasks), or
/// empty.
[[nodiscard]] std::string profileFromEnvironment();

}  // namespace rdmatune::cli
