#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

Command addMeasure(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("measure", "");
    return [] { return fail("measure: nothing here yet"); };
}

}  // namespace rdmatune::cli
