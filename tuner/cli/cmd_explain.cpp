// `rdma-tune explain`: what NCCL will choose with a profile, and why.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/cli/command.hpp"
#include "tuner/cli/profile_options.hpp"
#include "tuner/cli/site.hpp"
#include "tuner/model/explain.hpp"

namespace rdmatune::cli {
namespace {

using model::Collective;
using nlohmann::ordered_json;

struct Settings {
    std::string profile;
    ProfileOptions options;
    std::uint32_t gpus_per_node = 0;
    std::string collective = "allreduce";
    std::string gpu = "hopper";
    bool no_nvlink = false;
    bool amd = false;
    bool json = false;
};

struct Explanation {
    FabricProfile profile;
    model::Pricing pricing;
    model::Shape shape;
    Collective what = Collective::AllReduce;
};

Result<FabricProfile> profileOf(const Settings& settings, std::uint32_t gpus) {
    const bool by_hand = settings.options.alpha_us > 0 || settings.options.beta_gbs > 0;
    if (!settings.profile.empty() && by_hand)
        return Error{"--profile and --alpha/--beta exclude each other; expected one of them"};
    if (by_hand) {
        ProfileOptions options = settings.options;
        if (options.nodes == 0) return Error{"expected --nodes N beside --alpha and --beta"};
        if (options.rails == 0)
            options.rails =
                gpus < kProfileMaxRails ? gpus : static_cast<std::uint32_t>(kProfileMaxRails);
        return options.profile();
    }
    const std::string text = settings.profile.empty() ? profileFromEnvironment() : settings.profile;
    if (text.empty())
        return Error{
            "no network given; expected --profile TEXT, or --nodes N --gpus-per-node G --alpha US "
            "--beta GBS, or "
            "RDMA_TUNE_PROFILE in the environment"};
    return readProfileText(text);
}

template <std::size_t N>
std::size_t indexOf(const char* const (&names)[N], const std::string& name) {
    for (std::size_t i = 0; i < N; ++i)
        if (name == names[i]) return i;
    return 0;
}

Result<std::unique_ptr<Explanation>> prepare(const Settings& settings) {
    auto e = std::make_unique<Explanation>();
    const std::uint32_t gpus_given = settings.gpus_per_node;
    Result<FabricProfile> profile = profileOf(settings, gpus_given == 0 ? 8 : gpus_given);
    if (!profile) return profile.error();
    e->profile = *profile;
    const std::uint32_t gpus = gpus_given != 0                             ? gpus_given
                               : profile->rails != 0 && profile->rails > 1 ? profile->rails
                                                                           : 8;
    const std::uint32_t nodes =
        settings.options.nodes != 0 ? settings.options.nodes : profile->nodes;
    const model::Aside aside = makePricing(*profile, {nodes * gpus, nodes}, e->pricing);
    if (aside != model::Aside::No && aside != model::Aside::Neutral &&
        aside != model::Aside::Unmeasured)
        return Error{std::string("the plugin would leave NCCL alone: ") + model::describe(aside)};
    if (settings.no_nvlink)
        for (int a = 0; a < 2; ++a)
            for (int p = 0; p < model::kProtocols; ++p)
                e->pricing.latency.intra[a][p] = model::kPciIntra[a][p];
    if (settings.amd) e->pricing.latency.post = model::kPostAmd;
    prepareOctaves(e->pricing);
    e->shape = shapeOf(e->pricing);
    e->shape.gpu = static_cast<model::Gpu>(indexOf(model::kGpuNames, settings.gpu));
    e->shape.nvlink = !settings.no_nvlink;
    e->shape.amd_host = settings.amd;
    e->what = static_cast<Collective>(indexOf(model::kCollectiveNames, settings.collective));
    return e;
}

std::string text(const Explanation& e) {
    char line[model::kLineMax];
    std::string out;
    const auto add = [&] { out += std::string(line) + "\n"; };
    formatNetwork(e.pricing, line);
    add();
    out += "prices by NCCL's documented formula for " +
           std::string(model::kGpuNames[static_cast<int>(e.shape.gpu)]) +
           (e.shape.nvlink ? " GPUs behind NVLink" : " GPUs without NVLink") +
           "; the job's own table may differ\n";
    if (e.profile.neutral) out += "the profile is neutral: NCCL chooses by itself\n";
    std::snprintf(line, sizeof line, "\n%-13s %6s   %-26s   %-26s   %s", "collective", "bytes",
                  "tree", "ring", "choice");
    add();
    for (std::uint64_t bytes = model::kSmallest; bytes <= model::kLargest; bytes *= 2) {
        formatRow(explain(e.pricing, e.shape, e.what, bytes), e.what, line);
        add();
    }
    out += "\n";
    if (e.what == Collective::AllReduce)
        formatCrossing(ringFrom(e.pricing, e.shape, e.what, true),
                       ringFrom(e.pricing, e.shape, e.what, false), e.what, line);
    else
        std::snprintf(line, sizeof line, "%s: NCCL runs it as a ring; only the protocol is chosen",
                      model::kCollectiveNames[static_cast<int>(e.what)]);
    add();
    return out;
}

ordered_json choiceJson(model::Choice choice) {
    if (choice.algorithm < 0) return nullptr;
    return {{"algorithm", model::kAlgorithmNames[choice.algorithm]},
            {"protocol", model::kProtocolNames[choice.protocol]}};
}

ordered_json pricesJson(const model::FamilyPrices& prices) {
    ordered_json out = ordered_json::object();
    for (int a = 0; a < 2; ++a)
        for (int p = 0; p < model::kProtocols; ++p)
            if (prices.price[a][p] >= 0)
                out[std::string(model::kAlgorithmNames[a]) + "/" + model::kProtocolNames[p]] =
                    static_cast<double>(prices.price[a][p]) / model::kTicksPerUs;
    return out;
}

ordered_json json(const Explanation& e) {
    ordered_json rows = ordered_json::array();
    for (std::uint64_t bytes = model::kSmallest; bytes <= model::kLargest; bytes *= 2) {
        const model::Explained row = explain(e.pricing, e.shape, e.what, bytes);
        rows.push_back({{"bytes", bytes},
                        {"price_us", pricesJson(row.priced)},
                        {"nccl_price_us", pricesJson(row.nccl)},
                        {"choice", choiceJson(row.choice)},
                        {"nccl_choice", choiceJson(row.nccl_choice)}});
    }
    const auto crossing = [&](bool measured) -> ordered_json {
        const std::uint64_t from = ringFrom(e.pricing, e.shape, e.what, measured);
        if (from == 0) return nullptr;
        return from;
    };
    char line[model::kLineMax];
    formatNetwork(e.pricing, line);
    return {{"collective", model::kCollectiveNames[static_cast<int>(e.what)]},
            {"nodes", e.pricing.size.nodes},
            {"ranks", e.pricing.size.ranks},
            {"rails", e.pricing.rails},
            {"gpu", model::kGpuNames[static_cast<int>(e.shape.gpu)]},
            {"network", line},
            {"neutral", e.profile.neutral},
            {"ring_from_bytes", crossing(true)},
            {"nccl_ring_from_bytes", crossing(false)},
            {"sizes", rows}};
}

int run(const Settings& settings) {
    const auto explanation = prepare(settings);
    if (!explanation) return fail("explain: " + explanation.error().message);
    const std::string out =
        settings.json ? json(**explanation).dump(2) + "\n" : text(**explanation);
    return printOut(out) ? kExitOk : fail("explain: standard output cannot be written");
}

}  // namespace

Command addExplain(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand(
        "explain", "Show what ring and tree cost by a profile, and what NCCL will choose");
    auto settings = std::make_shared<Settings>();
    subcommand
        ->add_option("--profile", settings->profile, "A profile's text; default: RDMA_TUNE_PROFILE")
        ->type_name("TEXT");
    subcommand
        ->add_option("--nodes", settings->options.nodes,
                     "Nodes of the communicator; default: the profile's")
        ->type_name("N")
        ->check(CLI::Range(2U, 1000000U));
    subcommand
        ->add_option("--gpus-per-node", settings->gpus_per_node,
                     "Ranks on each node; default: one per rail, else 8")
        ->type_name("G")
        ->check(CLI::Range(1U, 64U));
    subcommand
        ->add_option("--rails", settings->options.rails, "HCAs per node; default: one per GPU")
        ->type_name("R")
        ->check(CLI::Range(1U, static_cast<unsigned>(kProfileMaxRails)));
    settings->options.add(*subcommand);
    subcommand
        ->add_option("--coll", settings->collective,
                     "allreduce (default), allgather or reducescatter")
        ->check(CLI::IsMember({"allreduce", "allgather", "reducescatter"}));
    subcommand->add_option("--gpu", settings->gpu, "volta, ampere, hopper (default) or blackwell")
        ->check(CLI::IsMember({"volta", "ampere", "hopper", "blackwell"}));
    subcommand->add_flag("--no-nvlink", settings->no_nvlink, "GPUs are joined by PCIe only");
    subcommand->add_flag("--amd-host", settings->amd, "The nodes have AMD's CPUs");
    subcommand->add_flag("--json", settings->json, "Print JSON");
    return [settings] { return run(*settings); };
}

}  // namespace rdmatune::cli
