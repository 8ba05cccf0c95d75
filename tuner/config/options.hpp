// Every option of rdma-tune, in one table, wherever it may be given: the srun flag's keys,
// RDMA_TUNE_* variables, plugstack.conf arguments, rdma-tune.conf. The documentation's table is
// printed from it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/base/result.hpp"

namespace rdmatune {

enum class Mode {
    Off,   ///< leave every step alone
    Bind,  ///< bind and set up, do not measure
    Auto   ///< bind, set up, measure where there is more than one node
};

/// The values that hold for one step. Defaults are in the table of options.cpp, not here.
struct Options {
    Mode mode = Mode::Off;
    bool strict = false;   ///< a failure fails the job instead of leaving it untuned
    bool verbose = false;  ///< list what was set, what was left alone, and why
    bool refresh = false;  ///< measure anew, whatever was measured before in this allocation
    bool site_default =
        false;  ///< the mode came from the site (default=), not from the user's flag
    std::string config = "/etc/rdma-tune/rdma-tune.conf";
    std::string program;         ///< absolute path of rdma-tune
    std::string tuner;           ///< absolute path of libnccl-tuner-rdmatune.so
    double budget_s = 5;         ///< time for measuring, seconds
    double node_timeout_s = 10;  ///< time for reading one node's topology, seconds
    double task_timeout_s = 5;   ///< time for preparing one task, seconds
    std::vector<std::string> hca_include;
    std::vector<std::string> hca_exclude;
    /// Saved topologies by host pattern (shell wildcards), in the order given: {"gpu[0-9]*",
    /// "/etc/..."}.
    std::vector<std::pair<std::string, std::string>> topology;
    bool load_peermem = false;         ///< root loads nvidia_peermem when slurmd starts
    bool gpu_memory = true;            ///< measure on GPU memory where possible
    int sample_nodes = 256;            ///< above this many nodes a sample is measured
    double slow_latency_factor = 2.1;  ///< a node this many times slower than the median is named
    double slow_bandwidth_fraction = 0.93;  ///< a node below this fraction of the median is named
    std::vector<std::string> rules;         ///< pinned choices, as written; tuner/model reads them
    std::vector<std::string> rule_origins;  ///< "FILE:LINE" of each rule, for messages
};

/// "off", "bind" or "auto".
[[nodiscard]] std::string_view toString(Mode mode);

/// Where an option may be given, combined with |.
enum Place : unsigned { kFlag = 1, kEnvironment = 2, kPlugstack = 4, kFile = 8 };

/// One row of the table.
struct OptionInfo {
    std::string_view key;       ///< "budget"; RDMA_TUNE_BUDGET in the environment
    std::string_view argument;  ///< "SECONDS", or empty for a switch
    std::string_view fallback;  ///< the default, as text
    unsigned places = 0;
    std::string_view help;  ///< one sentence
};
[[nodiscard]] std::span<const OptionInfo> optionTable();

/// The flag's argument: "", "(null)" (bare flag) or KEY[,KEY=VALUE...]. A bare flag means auto, and
/// so does one that names no mode. `help` sets nothing: see flagAsksForHelp. On error, of this and
/// of the following, `options` is untouched.
[[nodiscard]] Status applyFlag(Options& options, std::string_view argument);
/// One KEY=VALUE of plugstack.conf.
[[nodiscard]] Status applyPlugstack(Options& options, std::string_view argument);
/// rdma-tune.conf. A missing file at the default place is no error. Refuses a file that is not a
/// regular file owned by root (or by the caller) or is writable by group or others, and a symbolic
/// link; unknown keys and bad values are errors with file and line.
[[nodiscard]] Status applyFile(Options& options, const std::string& path);
/// RDMA_TUNE_* variables, looked up by `get` (null when unset); an empty one counts as unset.
template <class Get>
[[nodiscard]] Status applyEnvironment(Options& options, Get get);
/// One of them, by its key in the table.
[[nodiscard]] Status applyVariable(Options& options, std::string_view key, std::string_view value);

/// What holds for a command of the program: defaults, rdma-tune.conf (RDMA_TUNE_CONFIG names
/// another), RDMA_TUNE_* of this process, and the places of the program and the tuner.
[[nodiscard]] Result<Options> loadOptions();

/// What `--rdma-tune=help` prints: every key of the flag, one per line.
[[nodiscard]] std::string flagHelp();
/// Whether `help` is among the flag's keys.
[[nodiscard]] bool flagAsksForHelp(std::string_view argument);
/// The RDMA_TUNE_* name of a key of the table.
[[nodiscard]] std::string variableName(std::string_view key);

template <class Get>
Status applyEnvironment(Options& options, Get get) {
    Options wanted = options;
    for (const OptionInfo& info : optionTable()) {
        if ((info.places & kEnvironment) == 0) continue;
        if (const char* value = get(variableName(info.key).c_str()))
            if (Status status = applyVariable(wanted, info.key, value); !status) return status;
    }
    options = std::move(wanted);
    return Done{};
}

}  // namespace rdmatune
