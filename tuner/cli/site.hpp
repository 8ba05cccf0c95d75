// What plan, node, task and exec share: the site's options, this host's Node, requests.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/result.hpp"
#include "tuner/binding/plan.hpp"
#include "tuner/config/options.hpp"
#include "tuner/task/gpu_view.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune::cli {

/// rdma-tune.conf and RDMA_TUNE_* over it; `tuner` is filled in from beside the running program
/// when nothing names it. `config`: a file instead of the one that RDMA_TUNE_CONFIG or the default
/// names; empty: none.
[[nodiscard]] Result<Options> siteOptions(const Environment& env, const std::string& config = "");

/// This host: the first saved topology whose pattern matches its name (short or full), otherwise
/// the running machine under `roots`. GPUs of a saved topology get their index as device minor.
[[nodiscard]] Result<Node> nodeHere(const Options& options, const SystemRoots& roots);

/// The part of a request that the site and the job's other nodes decide.
[[nodiscard]] PlanRequest requestFrom(const Options& options, const Environment& env);

/// GPUs by number, range ("0-3"), PCI address or UUID, comma-separated.
[[nodiscard]] Result<std::vector<int>> gpusNamed(const Node& node, std::string_view list);

/// The running process's environment.
[[nodiscard]] Environment ownEnvironment();

/// "a,b" and repeated options as one list.
[[nodiscard]] std::vector<std::string> commaList(const std::vector<std::string>& given);

/// Writes all of `text` to standard output; false when that fails.
[[nodiscard]] bool printOut(std::string_view text);

}  // namespace rdmatune::cli
