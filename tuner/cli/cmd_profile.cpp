// `rdma-tune profile make | show`: profiles by hand, and what is in one.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "tuner/cli/command.hpp"
#include "tuner/cli/profile_options.hpp"
#include "tuner/cli/site.hpp"
#include "tuner/report/profile_text.hpp"

namespace rdmatune::cli {
namespace {

struct Settings {
    CLI::App* make = nullptr;
    CLI::App* show = nullptr;
    ProfileOptions options;
    std::string text;
    bool json = false;
};

int runMake(const Settings& settings) {
    if (!settings.options.neutral && settings.options.alpha_us <= 0 &&
        settings.options.beta_gbs <= 0 && settings.options.rules.empty())
        return fail(
            "profile make: nothing to put into a profile; expected --alpha, --beta, --rule or "
            "--neutral");
    const Result<FabricProfile> profile = settings.options.profile();
    if (!profile) return fail("profile make: " + profile.error().message);
    char line[kProfileTextMax];
    if (formatProfile(*profile, line, sizeof line) == 0)
        return fail(
            "profile make: these figures do not fit into a profile; bandwidth times rails must "
            "stay below "
            "1000000 GB/s, latencies below 1 s");
    return printOut(std::string(line) + "\n")
               ? kExitOk
               : fail("profile make: standard output cannot be written");
}

/// The argument, else standard input where something is piped in, else the environment.
Result<std::string> textToShow(const std::string& argument) {
    if (!argument.empty() && argument != "-") return argument;
    if (argument.empty())
        if (std::string text = profileFromEnvironment(); !text.empty()) return text;
    if (argument == "-" || isatty(STDIN_FILENO) == 0) {
        std::string line;
        if (std::getline(std::cin, line) && !line.empty()) return line;
    }
    return Error{
        "no profile given; expected its text as argument, on standard input, or in "
        "RDMA_TUNE_PROFILE"};
}

int runShow(const Settings& settings) {
    const Result<std::string> text = textToShow(settings.text);
    if (!text) return fail("profile show: " + text.error().message);
    const Result<FabricProfile> profile = readProfileText(*text);
    if (!profile) return fail("profile show: " + profile.error().message);
    std::string out;
    if (settings.json)
        out = profileToJson(*profile, 2) + "\n";
    else
        for (const std::string& line : describeProfile(*profile)) out += line + "\n";
    return printOut(out) ? kExitOk : fail("profile show: standard output cannot be written");
}

}  // namespace

Command addProfile(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand(
        "profile", "Make a profile by hand for experiments, or show what is in one");
    subcommand->require_subcommand(1);
    auto settings = std::make_shared<Settings>();

    settings->make = subcommand->add_subcommand("make", "Print a profile with the given figures");
    settings->make->add_option("--nodes", settings->options.nodes, "Nodes of the step")
        ->required()
        ->type_name("N")
        ->check(CLI::Range(1U, 1000000U));
    settings->options.rails = 1;
    settings->make->add_option("--rails", settings->options.rails, "HCAs per node (default 1)")
        ->type_name("R")
        ->check(CLI::Range(1U, static_cast<unsigned>(kProfileMaxRails)));
    settings->options.add(*settings->make);
    settings->make->add_option("--net", settings->options.network, "ib, roce or tcp (default ib)")
        ->check(CLI::IsMember({"ib", "roce", "tcp"}));
    settings->make->add_flag("--neutral", settings->options.neutral,
                             "A profile that changes no choice of NCCL's");

    settings->show =
        subcommand->add_subcommand("show", "Show a profile, every figure with its unit");
    settings->show->add_option("TEXT", settings->text,
                               "The profile; default: RDMA_TUNE_PROFILE, else standard input (-)");
    settings->show->add_flag("--json", settings->json, "Print JSON");
    return
        [settings] { return settings->make->parsed() ? runMake(*settings) : runShow(*settings); };
}

}  // namespace rdmatune::cli
