#include "tuner/cli/command.hpp"

namespace rdmatune::cli {

Command addDoctor(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("doctor", "");
    return [] { return fail("doctor: nothing here yet"); };
}

}  // namespace rdmatune::cli
