// What happens in a new child between fork and exec.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace rdmatune {

/// Everything the child needs, made ready before fork: afterwards nothing may be allocated,
/// because another thread of the parent may have held the allocator's lock.
struct ChildStart {
    char* const* argv = nullptr;
    char* const* environment = nullptr;
    int input = -1;   ///< becomes descriptor 0; this and the following are above 2
    int output = -1;  ///< becomes descriptor 1
    int errors = -1;  ///< becomes descriptor 2
    int report = -1;  ///< receives a StartFailure when the program could not be started
    pid_t parent = 0;
    bool become_user = false;
    uid_t uid = 0;
    gid_t gid = 0;
    const gid_t* groups = nullptr;
    std::size_t group_count = 0;
};

enum class StartStep : int { Session, Descriptors, User, Folder, Exec };

struct StartFailure {
    StartStep step;
    int error;  ///< errno
};

/// Turns this process into the program. Only async-signal-safe calls. Never returns.
[[noreturn]] void startProgram(const ChildStart& start);

}  // namespace rdmatune
