#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

Command addPlan(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("plan", "");
    return [] { return fail("plan: nothing here yet"); };
}

}  // namespace rdmatune::cli
