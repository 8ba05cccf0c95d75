// The program `rdma-tune-task`: `rdma-tune task` alone, linked statically. Inside a container,
// where the plugin's task_init runs with pyxis, neither the libraries nor the C library of
// `rdma-tune` can be counted on; this one needs nothing but the kernel.
#include <cstdio>
#include <exception>
#include <string>

#include "tuner/base/version.hpp"
#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

int fail(std::string_view message) {
    std::fprintf(stderr, "rdma-tune: %.*s\n", static_cast<int>(message.size()), message.data());
    return kExitFailure;
}

namespace {

int run(int argc, char** argv) {
    CLI::App app{"Prepares one task of a step, inside a container (run by the plugin)."};
    app.name("rdma-tune-task");
    app.set_version_flag("--version", std::string("rdma-tune ") + kVersion);
    app.require_subcommand(1);
    CLI::App* subcommand = nullptr;
    const Command command = addTask(app, subcommand);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& done) {
        return app.exit(done);
    } catch (const CLI::ParseError& wrong) {
        std::fprintf(stderr, "rdma-tune: %s\nRun with --help for usage.\n", wrong.what());
        return kExitUsage;
    }
    return command();
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
