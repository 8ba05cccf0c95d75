// The agents as the controller sees them: programs it started, spoken to over their standard
// input and output.
#pragma once

#include <sys/types.h>

#include <list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/fabric/lines.hpp"
#include "tuner/fabric/socket.hpp"
#include "tuner/fabric/wire.hpp"

namespace rdmatune::fabric {

/// A program to start: srun for all agents of a step, or one agent.
struct Invocation {
    std::vector<std::string> arguments;    ///< arguments[0] is looked up in PATH
    std::vector<std::string> environment;  ///< NAME=VALUE, nothing else is passed on
    bool die_with_parent = true;
};

class Crew {
  public:
    Crew() = default;
    Crew(Crew&&) = default;
    Crew& operator=(Crew&&) = default;
    /// Ends what still runs.
    ~Crew();

    /// Starts a program in a process group of its own, with default signals and no inherited
    /// descriptors. An error when it cannot even be started.
    [[nodiscard]] Status start(const Invocation& command);
    /// Takes on an agent that runs elsewhere, by its two pipes.
    void adopt(Fd input, Fd output);

    /// One text to all that still listen.
    void broadcast(std::string_view text, Deadline deadline);
    /// The next message of any agent; nothing at the deadline or when all have gone.
    [[nodiscard]] std::optional<Message> next(Deadline deadline);
    /// Everything the members print, message or not, until the deadline or until all have gone.
    [[nodiscard]] std::string drain(Deadline deadline);
    /// Numbers of agents known to have ended: the place in which each was started, or, where one
    /// srun started them all, what srun says of its tasks.
    [[nodiscard]] std::set<int> ended() const;
    /// Nobody is left who could still say something.
    [[nodiscard]] bool gone() const;

    /// Closes the agents' input and waits for them; who is still there at the deadline is ended
    /// by SIGTERM, and 300 ms later by SIGKILL.
    void finish(Deadline deadline);

    /// What came on standard error, line by line, oldest first (at most 200 lines are kept).
    [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }

  private:
    struct Member {
        pid_t pid = -1;
        Fd input;
        Fd output;
        Fd errors;
        LineReader lines{-1};
        LineReader error_lines{-1};
    };
    [[nodiscard]] std::optional<std::string> nextLine(Deadline deadline);
    void readComplaints(Member& member);
    void reap(Deadline deadline);
    [[nodiscard]] bool running() const;
    void signalAll(int signal);

    std::list<Member> members_;
    std::vector<std::string> complaints_;
};

/// Task numbers in a line such as "srun: error: gpu02: task 1: Killed" or "srun: error: gpu[02-03]:
/// tasks 1-2,4: Exited with exit code 1"; empty for other lines.
[[nodiscard]] std::set<int> endedTasks(std::string_view line);

/// An argument list in words: single and double quotes and backslashes as in a shell, nothing else.
[[nodiscard]] Result<std::vector<std::string>> shellWords(std::string_view text);

}  // namespace rdmatune::fabric
