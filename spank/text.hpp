// The plugin's texts, free of Slurm: what is read from the program's output, what one hook tells
// another, what a child's environment holds. Everything read here came from a user's process.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/base/cpu_set.hpp"
#include "tuner/base/result.hpp"
#include "tuner/config/options.hpp"

namespace rdmatune::spank {

/// Lines fit to be shown to a user: at most `lines`, each cut at `width` bytes, without empty ones
/// and without control characters (a terminal would obey them); UTF-8 passes.
[[nodiscard]] std::vector<std::string> shownLines(std::string_view text, std::size_t lines,
                                                  std::size_t width = 400);

/// What `rdma-tune measure` printed.
struct Measured {
    std::string profile;
    std::string agreed;  ///< empty: no agreement
};
[[nodiscard]] Result<Measured> parseMeasured(std::string_view output);

/// What `rdma-tune task` printed.
struct TaskReply {
    std::vector<std::pair<std::string, std::string>> set;
    std::vector<std::string> unset;
    std::optional<CpuSet> cpus;
    std::vector<std::string> say;
};
/// Nothing is returned of a reply that does not end with `end`, or that has one wrong line.
[[nodiscard]] Result<TaskReply> parseTaskReply(std::string_view output);

/// One section of what `rdma-tune task` reads: "NAME LENGTH\n" and the bytes.
[[nodiscard]] std::string section(std::string_view name, std::string_view bytes);

/// What srun's plugin tells the nodes' (as SLURM_RDMA_TUNE_STEP, which reaches them whatever
/// --export says): what was decided for this step, and what the user was told already.
struct StepNote {
    Mode mode = Mode::Off;
    bool strict = false;
    bool verbose = false;
    bool site_default = false;  ///< the user asked for nothing: a node without GPUs stays alone
    bool quiet = false;         ///< srun -Q
    bool told = false;          ///< why the step is untuned has been said
    bool refuse = false;        ///< no task of this step may start: strict, or interrupted
    bool nested = false;        ///< a step of the program's own, for measuring
    bool cpu_bind = false;      ///< --cpu-bind or its variable was given: cores are left alone
    bool operator==(const StepNote&) const = default;

    [[nodiscard]] std::string str() const;
    [[nodiscard]] static std::optional<StepNote> parse(std::string_view text);
};

/// NAME=VALUE strings as a child's environment.
class Environment {
  public:
    Environment() = default;
    explicit Environment(char* const* strings);  ///< a null-terminated array, or null

    void set(std::string_view name, std::string_view value);
    void unset(std::string_view name);
    [[nodiscard]] const std::string* get(std::string_view name) const;  ///< the value, or null
    /// Removes variables of these names that have no value: srun cannot take a variable back from
    /// its tasks, it can only hand down an empty one.
    void dropEmpty(std::string_view prefix);
    /// Keeps only names that a daemon's child may have from a user: no loader variables.
    void keepForNode();
    [[nodiscard]] std::vector<std::string> strings() const;
    /// NAME=VALUE separated by zero bytes.
    [[nodiscard]] std::string block() const;

  private:
    std::vector<std::pair<std::string, std::string>> variables_;
};

/// What a task was given, as NAME:CHECKSUM,...: an srun inside the task can tell what it inherits
/// from us from what its user has set since.
[[nodiscard]] std::string remember(const std::vector<std::pair<std::string, std::string>>& set);
/// The names of such a text whose values are still the same.
[[nodiscard]] std::vector<std::string> stillOurs(std::string_view remembered,
                                                 const Environment& environment);

}  // namespace rdmatune::spank
