#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

Command addAgent(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("agent", "");
    return [] { return fail("agent: nothing here yet"); };
}

}  // namespace rdmatune::cli
