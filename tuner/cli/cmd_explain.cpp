#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

Command addExplain(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("explain", "");
    return [] { return fail("explain: nothing here yet"); };
}

}  // namespace rdmatune::cli
