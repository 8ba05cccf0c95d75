// A child process under a time limit that cannot hurt its parent: the parent may be srun or
// slurmstepd, threaded, with odd signal masks, and root.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rdmatune {

/// Who a child becomes, completely and without a way back.
struct ChildUser {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;  ///< supplementary groups, all of them
};

struct ChildSpec {
    std::vector<std::string> argv;         ///< argv[0] is the absolute path of the program
    std::vector<std::string> environment;  ///< NAME=VALUE, and nothing else
    std::string input;                     ///< what the child reads from its standard input
    std::size_t output_max = 1 << 20;      ///< bytes; more ends the child (TooMuchOutput)
    std::size_t errors_max = 1 << 14;      ///< bytes kept of its standard error; more is dropped
    double timeout_s = 5;                  ///< seconds until its process group gets SIGTERM
    double grace_s = 0.3;                  ///< seconds from SIGTERM to SIGKILL
    std::optional<ChildUser> user;         ///< absent: stay who we are
    std::function<bool()> cancelled;       ///< asked about every 50 ms; true ends the child
};

struct ChildOutcome {
    enum class End {
        Exited,     ///< `status` is its exit status
        Signalled,  ///< `status` is the signal
        TimedOut,
        TooMuchOutput,
        Cancelled,
        NotStarted,  ///< `failure` says which step failed
        Reaped       ///< somebody else in this process collected the status
    };
    End end = End::NotStarted;
    int status = 0;
    std::string output;
    std::string errors;
    bool errors_cut = false;
    std::string failure;
    double seconds = 0;

    [[nodiscard]] bool succeeded() const { return end == End::Exited && status == 0; }
    /// How it ended, as the rest of a sentence that begins with the program's name:
    /// "exited with status 3", "took longer than 5 s", ...
    [[nodiscard]] std::string describe() const;
    double limit_s = 0;  ///< the timeout that held
};

/// Runs it to its end. Returns within timeout_s + grace_s + 1 s whatever the child does: one that
/// ignores SIGTERM, grandchildren that keep the pipes open, one that cannot be killed because it
/// hangs in a driver. The child has its own session, default signals with none blocked, "/" as
/// its folder, no core dumps, and no descriptor of ours but 0, 1 and 2. Its whole process group is
/// killed when it ends, however it ends. Only its own pid is waited for.
[[nodiscard]] ChildOutcome runChild(const ChildSpec& spec);

}  // namespace rdmatune
