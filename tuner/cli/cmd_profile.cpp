#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

Command addProfile(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("profile", "");
    return [] { return fail("profile: nothing here yet"); };
}

}  // namespace rdmatune::cli
