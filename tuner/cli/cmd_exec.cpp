#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

Command addExec(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("exec", "");
    return [] { return fail("exec: nothing here yet"); };
}

}  // namespace rdmatune::cli
