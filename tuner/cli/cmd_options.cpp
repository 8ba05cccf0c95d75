// `rdma-tune options`: the table of every option, from which the documentation's table is made.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tuner/cli/command.hpp"
#include "tuner/config/options.hpp"

namespace rdmatune::cli {
namespace {

std::string code(std::string_view text) {
    return text.empty() ? std::string() : "`" + std::string(text) + "`";
}

std::string withArgument(const OptionInfo& info, std::string_view name) {
    const std::string shown(name);
    return info.argument.empty() ? shown : shown + "=" + std::string(info.argument);
}

/// What a reader types at each place, as one cell.
std::string places(const OptionInfo& info) {
    std::vector<std::string> cells;
    if (info.places & kFlag) cells.push_back("`--rdma-tune=" + withArgument(info, info.key) + "`");
    if (info.places & kEnvironment) cells.push_back(code(variableName(info.key)));
    if (info.places & kPlugstack) cells.emplace_back("plugstack.conf");
    if (info.places & kFile) cells.emplace_back("rdma-tune.conf");
    std::string out;
    for (const std::string& cell : cells) out += (out.empty() ? "" : ", ") + cell;
    return out;
}

void printMarkdown() {
    std::printf("| key | where it may be given | default | meaning |\n|---|---|---|---|\n");
    for (const OptionInfo& info : optionTable())
        std::printf("| %s | %s | %s | %s |\n", code(withArgument(info, info.key)).c_str(),
                    places(info).c_str(), code(info.fallback).c_str(),
                    std::string(info.help).c_str());
}

void printJson() {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const OptionInfo& info : optionTable())
        all.push_back({{"key", info.key},
                       {"argument", info.argument},
                       {"default", info.fallback},
                       {"flag", (info.places & kFlag) != 0},
                       {"variable", (info.places & kEnvironment) ? variableName(info.key) : ""},
                       {"plugstack", (info.places & kPlugstack) != 0},
                       {"file", (info.places & kFile) != 0},
                       {"help", info.help}});
    std::printf("%s\n", all.dump(2).c_str());
}

}  // namespace

Command addOptions(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("options", "Print every option and where it may be given");
    subcommand->group("");  // for the documentation and its test, not for daily use
    auto json = std::make_shared<bool>(false);
    subcommand->add_flag("--json", *json, "As JSON instead of a Markdown table");
    return [json] {
        *json ? printJson() : printMarkdown();
        return kExitOk;
    };
}

}  // namespace rdmatune::cli
