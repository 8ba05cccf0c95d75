// The program `rdma-tune`.
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "tuner/base/version.hpp"
#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

int fail(std::string_view message) {
    std::fprintf(stderr, "rdma-tune: %.*s\n", static_cast<int>(message.size()), message.data());
    return kExitFailure;
}

namespace {

constexpr Registration kCommands[] = {addTopo,    addPlan,    addMeasure, addAgent,
                                      addExplain, addProfile, addDoctor,  addExec,
                                      addNode,    addTask,    addOptions, addReport};

int run(int argc, char** argv) {
    CLI::App app{
        "Binds each rank of a training job to the GPU and the HCA that share a PCIe switch, "
        "measures the job's fabric, and lets NCCL choose ring or tree by it."};
    app.name("rdma-tune");
    app.set_version_flag("--version", std::string("rdma-tune ") + kVersion);
    app.require_subcommand(1);
    std::vector<std::pair<CLI::App*, Command>> commands;
    for (const Registration add : kCommands) {
        CLI::App* subcommand = nullptr;
        Command command = add(app, subcommand);
        commands.emplace_back(subcommand, std::move(command));
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& done) {
        return app.exit(done);  // --help, --version
    } catch (const CLI::ParseError& wrong) {
        std::fprintf(stderr, "rdma-tune: %s\nRun with --help for usage.\n", wrong.what());
        return kExitUsage;
    }
    for (const auto& [subcommand, command] : commands)
        if (subcommand != nullptr && subcommand->parsed()) return command();
    return kExitUsage;
}

}  // namespace
}  // namespace rdmatune::cli

int main(int argc, char** argv) {
    try {
        return rdmatune::cli::run(argc, argv);
    } catch (const std::exception& error) {
        return rdmatune::cli::fail(error.what());
    }
}
