#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

Command addTask(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("task", "");
    return [] { return fail("task: nothing here yet"); };
}

}  // namespace rdmatune::cli
