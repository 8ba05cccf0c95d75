#include "tuner/cli/profile_options.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tuner/base/text.hpp"
#include "tuner/config/rule_text.hpp"

namespace rdmatune::cli {
namespace {

/// Thousandths as a whole number; the options' own checks have bounded the value.
std::uint32_t thousandths(double value) {
    return static_cast<std::uint32_t>(std::llround(value * 1e3));
}

PatternFigures figuresOf(double alpha, double alpha_worst, double beta, double beta_worst,
                         std::uint32_t rails) {
    PatternFigures figures;
    figures.alpha_ns = thousandths(alpha);
    figures.alpha_worst_ns = thousandths(alpha_worst > 0 ? alpha_worst : alpha);
    figures.beta_mbps = thousandths(beta * rails);
    figures.beta_worst_mbps = thousandths((beta_worst > 0 ? beta_worst : beta) * rails);
    return figures;
}

}  // namespace

double usualLinkRate(double beta_gbs) {
    constexpr double kRates[] = {1.25, 3.125, 5, 6.25, 7, 12.5, 25, 50, 100};
    for (const double rate : kRates)
        if (beta_gbs <= rate) return rate;
    return beta_gbs;
}

void ProfileOptions::add(CLI::App& app) {
    const auto latency = CLI::Range(0.001, 1e6);
    const auto bandwidth = CLI::Range(0.001, 1e4);
    app.add_option("--alpha", alpha_us, "One-way latency of a small message, us")
        ->type_name("US")
        ->check(latency);
    app.add_option("--beta", beta_gbs, "Bandwidth of one rail, GB/s (10^9 bytes)")
        ->type_name("GBS")
        ->check(bandwidth);
    app.add_option("--nominal", nominal_gbs,
                   "Link rate of one rail, GB/s: what NCCL believes; default: the next usual one "
                   "above beta")
        ->type_name("GBS")
        ->check(bandwidth);
    app.add_option("--worst-alpha", alpha_worst_us, "The worst edge's latency, us")
        ->type_name("US")
        ->check(latency);
    app.add_option("--worst-beta", beta_worst_gbs, "The worst edge's bandwidth per rail, GB/s")
        ->type_name("GBS")
        ->check(bandwidth);
    app.add_option("--tree-alpha", tree_alpha_us,
                   "Latency in the tree pattern, us; default: --alpha")
        ->type_name("US")
        ->check(latency);
    app.add_option("--tree-beta", tree_beta_gbs,
                   "Bandwidth of one rail in the tree pattern, GB/s; default: --beta")
        ->type_name("GBS")
        ->check(bandwidth);
    app.add_option("--rule", rules, "A pinned choice, as in rdma-tune.conf; may be repeated")
        ->type_name("RULE");
}

Result<FabricProfile> ProfileOptions::profile() const {
    FabricProfile p;
    p.nodes = p.nodes_measured = nodes;
    p.rails = rails;
    p.complete = true;
    p.neutral = neutral;
    p.transport = network == "tcp"    ? ProfileTransport::Tcp
                  : network == "roce" ? ProfileTransport::Roce
                                      : ProfileTransport::InfiniBand;
    if (alpha_worst_us > 0 && alpha_worst_us < alpha_us)
        return Error{
            "--worst-alpha is less than --alpha; expected the worst edge's latency, at least " +
            std::to_string(alpha_us) + " us"};
    if (beta_worst_gbs > beta_gbs)
        return Error{
            "--worst-beta is more than --beta; expected the worst edge's bandwidth, at most " +
            std::to_string(beta_gbs) + " GB/s"};
    p.ring = figuresOf(alpha_us, alpha_worst_us, beta_gbs, beta_worst_gbs, rails);
    const double tree_alpha = tree_alpha_us > 0 ? tree_alpha_us : alpha_us;
    const double tree_beta = tree_beta_gbs > 0 ? tree_beta_gbs : beta_gbs;
    p.tree = figuresOf(tree_alpha, tree_alpha_us > 0 ? tree_alpha : alpha_worst_us, tree_beta,
                       tree_beta_gbs > 0 ? tree_beta : beta_worst_gbs, rails);
    p.rail_mbps = thousandths(beta_gbs);
    if (beta_gbs > 0)
        p.rail_nominal_mbps = thousandths(nominal_gbs > 0 ? nominal_gbs : usualLinkRate(beta_gbs));
    Result<std::string> compact =
        compileRules(rules, std::vector<std::string>(rules.size(), "--rule"));
    if (!compact) return compact.error();
    compact->copy(p.rules, sizeof p.rules - 1);
    return p;
}

Result<FabricProfile> readProfileText(const std::string& text) {
    FabricProfile profile;
    const std::string line(trim(text));
    const ProfileError error = parseProfile(line.c_str(), profile);
    if (error == ProfileError::None) return profile;
    return Error{std::string("not a usable profile: ") + describe(error) +
                 "; expected one line as `rdma-tune measure` or `rdma-tune profile make` prints "
                 "it, quoted for the shell"};
}

std::string profileFromEnvironment() {
    for (const char* name : {"RDMA_TUNE_PROFILE", "SLURM_RDMA_TUNE_PROFILE"})
        if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
    return {};
}

}  // namespace rdmatune::cli
