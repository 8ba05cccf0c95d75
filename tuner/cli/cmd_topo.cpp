#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

Command addTopo(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("topo", "");
    return [] { return fail("topo: nothing here yet"); };
}

}  // namespace rdmatune::cli
