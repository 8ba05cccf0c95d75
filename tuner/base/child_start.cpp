#include "tuner/base/child_start.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace rdmatune {
namespace {

static_assert(sizeof(long) == 8,
              "the system calls that set ids are 16 bits wide on 32-bit machines");

[[noreturn]] void giveUp(const ChildStart& start, StartStep step) {
    const StartFailure failure{step, errno};
    // A failed report only costs the reason: the parent sees status 127.
    [[maybe_unused]] const ssize_t sent = write(start.report, &failure, sizeof failure);
    _exit(127);
}

/// Raw, because glibc's sigaction refuses the two signals that it keeps to itself (32 and 33),
/// which some service managers nevertheless pass on ignored.
void resetSignals() {
    constexpr int kLastSignal = 64;  // the kernel's _NSIG on every 64-bit machine but MIPS
    constexpr std::size_t kSetBytes = kLastSignal / 8;
    // All zero is SIG_DFL, no flags and an empty mask, however an architecture orders them.
    const std::uint64_t plain[8] = {};
    for (int number = 1; number <= kLastSignal; ++number)
        syscall(SYS_rt_sigaction, number, plain, nullptr, kSetBytes);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, plain, nullptr, kSetBytes);
}

void markCloseOnExec(int fd) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/// The kernel's directory entries, read without opendir, which allocates.
void markOpenOnesFromProc() {
    struct Entry {
        std::uint64_t inode;
        std::int64_t offset;
        std::uint16_t size;
        std::uint8_t type;
        char name[1];
    };
    const int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        struct rlimit files {};
        getrlimit(RLIMIT_NOFILE, &files);
        const int last = files.rlim_cur < 65536 ? static_cast<int>(files.rlim_cur) : 65536;
        for (int fd = 3; fd < last; ++fd) markCloseOnExec(fd);
        return;
    }
    alignas(Entry) char buffer[4096];
    for (;;) {
        const long got = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
        if (got <= 0) break;
        for (long at = 0; at < got;) {
            std::uint16_t size = 0;
            std::memcpy(&size, buffer + at + offsetof(Entry, size), sizeof size);
            int fd = 0;
            const char* name = buffer + at + offsetof(Entry, name);
            while (*name >= '0' && *name <= '9') fd = fd * 10 + (*name++ - '0');
            if (fd > 2) markCloseOnExec(fd);
            at += size;
        }
    }
}

/// No descriptor of the parent's survives exec: a job's pipes or sockets held open by our child
/// would keep the step from ending.
void markInheritedDescriptors() {
#ifdef SYS_close_range
    constexpr unsigned kCloseOnExec = 1U << 2;  // CLOSE_RANGE_CLOEXEC, Linux 5.11
    if (syscall(SYS_close_range, 3U, ~0U, kCloseOnExec) == 0) return;
#endif
    markOpenOnesFromProc();
}

bool dropCapabilities() {
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);  // fails before Linux 4.3: none there
    struct __user_cap_header_struct header {};
    header.version = _LINUX_CAPABILITY_VERSION_3;
    struct __user_cap_data_struct nothing[2] = {};
    return syscall(SYS_capset, &header, nothing) == 0;
}

/// All ids, raw: glibc's wrappers signal the other threads, of which a forked child has none, and
/// take locks that another thread of the parent may have held.
bool becomeUser(const ChildStart& start) {
    // slurmstepd calls user_init with the user's effective ids; the real ones are still root's.
    if (syscall(SYS_geteuid) != 0 && syscall(SYS_getuid) == 0 &&
        syscall(SYS_setresuid, -1, 0, -1) != 0)
        return false;
    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
    if (syscall(SYS_geteuid) == 0) {
        // The daemons are shielded from the OOM killer; the user's process must not be.
        const int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (oom >= 0) {
            [[maybe_unused]] const ssize_t done = write(oom, "0", 1);
            close(oom);
        }
        if (syscall(SYS_setgroups, start.group_count, start.groups) != 0) return false;
    }
    if (syscall(SYS_setresgid, start.gid, start.gid, start.gid) != 0) return false;
    if (syscall(SYS_setresuid, start.uid, start.uid, start.uid) != 0) return false;
    if (start.uid == 0) return true;  // root's own job
    if (!dropCapabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    if (syscall(SYS_setresuid, -1, 0, -1) == 0 || syscall(SYS_setuid, 0) == 0) {
        errno = EPERM;  // there is a way back, so this is not the user
        return false;
    }
    return true;
}

}  // namespace

void startProgram(const ChildStart& start) {
    // A session of its own: one kill reaches everything it starts, and no terminal's Ctrl-C does.
    if (setsid() < 0) giveUp(start, StartStep::Session);
    resetSignals();
    markInheritedDescriptors();
    // dup2 clears close-on-exec on the copy.
    if (dup2(start.input, 0) < 0 || dup2(start.output, 1) < 0 || dup2(start.errors, 2) < 0)
        giveUp(start, StartStep::Descriptors);
    if (start.become_user && !becomeUser(start)) giveUp(start, StartStep::User);
    const struct rlimit no_core {};
    setrlimit(RLIMIT_CORE, &no_core);
    umask(077);
    if (chdir("/") != 0) giveUp(start, StartStep::Folder);
    // After the ids, whose change clears it. The parent's thread waits for us as long as it lives.
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    if (getppid() != start.parent) _exit(127);
    execve(start.argv[0], start.argv, start.environment);
    giveUp(start, StartStep::Exec);
}

}  // namespace rdmatune
