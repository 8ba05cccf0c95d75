// One subcommand of `rdma-tune` per file cmd_NAME.cpp; main.cpp strings them together.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace rdmatune::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  ///< reason on stderr
inline constexpr int kExitUsage = 2;

/// Adds the subcommand and its options to `app`; returns what to run when it was chosen.
/// The returned function gives the exit status.
using Command = std::function<int()>;
using Registration = Command (*)(CLI::App& app, CLI::App*& subcommand);

Command addTopo(CLI::App& app, CLI::App*& subcommand);
Command addPlan(CLI::App& app, CLI::App*& subcommand);
Command addMeasure(CLI::App& app, CLI::App*& subcommand);
Command addAgent(CLI::App& app, CLI::App*& subcommand);  ///< hidden: one node's side of measure
Command addExplain(CLI::App& app, CLI::App*& subcommand);
Command addProfile(CLI::App& app, CLI::App*& subcommand);
Command addDoctor(CLI::App& app, CLI::App*& subcommand);
Command addReport(CLI::App& app, CLI::App*& subcommand);
Command addExec(CLI::App& app, CLI::App*& subcommand);
Command addNode(CLI::App& app,
                CLI::App*& subcommand);  ///< hidden: what user_init runs, prints Node and Plan
Command addTask(CLI::App& app,
                CLI::App*& subcommand);  ///< hidden: what task_init runs, prints settings
Command addOptions(CLI::App& app,
                   CLI::App*& subcommand);  ///< hidden: the option table, for the documentation

/// Prints "rdma-tune: MESSAGE" to stderr and returns kExitFailure.
int fail(std::string_view message);

}  // namespace rdmatune::cli
