#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

Command addNode(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("node", "");
    return [] { return fail("node: nothing here yet"); };
}

}  // namespace rdmatune::cli
