// What holds for one step, put together from every place that may say something about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spank/text.hpp"
#include "tuner/base/child.hpp"
#include "tuner/base/result.hpp"
#include "tuner/config/options.hpp"

namespace rdmatune::spank {

/// Where the plugin's options come from; the file is found through them.
struct Sources {
    std::vector<std::string> plugstack;  ///< arguments in plugstack.conf
    std::optional<std::string> flag;     ///< last argument of --rdma-tune; absent: not given
    std::string plugin;                  ///< absolute path of the plugin's own file
};

/// File, plugstack.conf, environment, flag: later ones win. `program` and `tuner` are looked for
/// beside the plugin when no one names them.
[[nodiscard]] Result<Options> resolve(const Sources& sources, const Environment& environment);

/// What of a user's environment slurmstepd looks at, which can become root again: three switches,
/// in one word each. A file that the user names, and everything else, is for srun and the children.
[[nodiscard]] Environment switches(const Environment& environment);

/// The options as what a node is told of them.
[[nodiscard]] StepNote noteOf(const Options& options);

/// What can be said of the step when resolve failed: whether anybody asked for tuning, and
/// strictly.
[[nodiscard]] StepNote asked(const Sources& sources, const Environment& environment);

/// Checks that the program may be started: it and its folder belong to root or to the plugin's
/// owner, and nobody else can write there.
[[nodiscard]] Status checkProgram(const Options& options, const Sources& sources);

/// Lets a child see the options that did not come from its environment (plugstack.conf, the flag)
/// and the places of the configuration and the tuner as RDMA_TUNE_* variables, which the program
/// reads. What the user set stays.
void passOn(const Options& options, const Sources& sources, Environment& environment);

}  // namespace rdmatune::spank
