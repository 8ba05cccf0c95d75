#include "tuner/base/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tuner/base/child_start.hpp"
#include "tuner/base/fd.hpp"

namespace rdmatune {
namespace {

using Clock = std::chrono::steady_clock;
using End = ChildOutcome::End;

constexpr auto kTick = std::chrono::milliseconds(50);      // how often `cancelled` is asked
constexpr auto kBlindTick = std::chrono::milliseconds(5);  // without pidfd (before Linux 5.3)
constexpr auto kUnkillable = std::chrono::seconds(1);  // then a child in a driver is left behind

/// The same file with a number above 2, so that the child's dup2 onto 0, 1 and 2 cannot overwrite
/// it: a daemon may run with those closed.
Fd aboveStandard(int fd) {
    Fd low(fd);
    if (fd < 0 || fd > 2) return low;
    return Fd(fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

struct Pipe {
    Fd read;
    Fd write;
};

bool makePipe(Pipe& made) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    made.read = aboveStandard(ends[0]);
    made.write = aboveStandard(ends[1]);
    if (!made.read || !made.write) return false;
    fcntl(made.read.get(), F_SETFL, O_NONBLOCK);
    return true;
}

/// The input as a file in memory: nothing has to be written while the child runs, and a child that
/// dies early cannot send SIGPIPE.
Fd inputFile(const std::string& text) {
    Fd file = aboveStandard(memfd_create("input", MFD_CLOEXEC));
    for (std::size_t at = 0; file && at < text.size();) {
        const ssize_t wrote = write(file.get(), text.data() + at, text.size() - at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return Fd();
        at += static_cast<std::size_t>(wrote);
    }
    if (file && lseek(file.get(), 0, SEEK_SET) < 0) return Fd();
    return file;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
    std::vector<char*> out;
    out.reserve(strings.size() + 1);
    for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

const char* nameOf(StartStep step) {
    switch (step) {
        case StartStep::Session:
            return "a session of its own";
        case StartStep::Descriptors:
            return "its descriptors";
        case StartStep::User:
            return "becoming the user";
        case StartStep::Folder:
            return "the folder /";
        case StartStep::Exec:
            break;
    }
    return "exec";
}

/// One running child, from fork to its last byte.
class Running {
  public:
    Running(const ChildSpec& spec, ChildOutcome& outcome) : spec_(spec), outcome_(outcome) {}

    bool start() {
        Fd input = inputFile(spec_.input);
        if (!input || !makePipe(output_) || !makePipe(errors_) || !makePipe(report_))
            return refuse("descriptors");
        const std::vector<char*> argv = pointers(spec_.argv);
        const std::vector<char*> environment = pointers(spec_.environment);
        ChildStart child;
        child.argv = argv.data();
        child.environment = environment.data();
        child.input = input.get();
        child.output = output_.write.get();
        child.errors = errors_.write.get();
        child.report = report_.write.get();
        child.parent = getpid();
        if (spec_.user) {
            child.become_user = true;
            child.uid = spec_.user->uid;
            child.gid = spec_.user->gid;
            child.groups = spec_.user->groups.data();
            child.group_count = spec_.user->groups.size();
        }
        // No handler of the parent's may run in the child before it has its own dispositions.
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pid_ = fork();
        if (pid_ == 0) startProgram(child);
        const int failure = errno;
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (pid_ < 0) {
            errno = failure;
            return refuse("fork");
        }
        output_.write.reset();
        errors_.write.reset();
        report_.write.reset();
#ifdef SYS_pidfd_open
        pidfd_ = aboveStandard(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
        if (pidfd_) fcntl(pidfd_.get(), F_SETFD, FD_CLOEXEC);
#endif
        return true;
    }

    void watch() {
        const auto deadline = Clock::now() + seconds(spec_.timeout_s);
        while (!exited()) {
            if (Clock::now() >= deadline) return stop(End::TimedOut);
            if (spec_.cancelled && spec_.cancelled()) return stop(End::Cancelled);
            waitForNews(deadline);
            if (outcome_.output.size() > spec_.output_max) return stop(End::TooMuchOutput);
        }
        drain();
        if (outcome_.output.size() > spec_.output_max) return stop(End::TooMuchOutput);
        finish();
    }

  private:
    static Clock::duration seconds(double count) {
        return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
    }

    bool refuse(const char* what) {
        outcome_.failure = std::string(what) + ": " + std::strerror(errno);
        return false;
    }

    /// Whether it has ended; its status stays to be collected, so that its pid, which is also its
    /// process group's, cannot be given to anybody else before the group is killed.
    [[nodiscard]] bool exited() const {
        siginfo_t info{};
        int result = 0;
        do result = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
        while (result != 0 && errno == EINTR);
        return result != 0 || info.si_pid == pid_;  // ECHILD: SIGCHLD ignored, or reaped elsewhere
    }

    void waitForNews(Clock::time_point deadline) {
        std::array<pollfd, 3> files = {{{output_.read.get(), POLLIN, 0},
                                        {errors_.read.get(), POLLIN, 0},
                                        {pidfd_.get(), POLLIN, 0}}};
        Clock::duration wait = deadline - Clock::now();
        if (spec_.cancelled) wait = std::min<Clock::duration>(wait, kTick);
        if (!pidfd_) wait = std::min<Clock::duration>(wait, kBlindTick);
        const auto whole = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
        if (poll(files.data(), files.size(), static_cast<int>(std::max<long>(whole, 0))) > 0)
            drain();
    }

    void drain() {
        take(output_.read, outcome_.output, spec_.output_max + 1, nullptr);
        take(errors_.read, outcome_.errors, spec_.errors_max, &outcome_.errors_cut);
    }

    /// Reads what is there; beyond `limit` bytes it stops (no `cut`) or drops (`cut`).
    static void take(Fd& from, std::string& into, std::size_t limit, bool* cut) {
        char buffer[16384];
        // Bounded, so that a child that writes without end cannot keep us from the clock.
        for (int round = 0; from && round < 64; ++round) {
            if (cut == nullptr && into.size() >= limit) return;
            const ssize_t got = read(from.get(), buffer, sizeof buffer);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0 && errno == EAGAIN) return;
            if (got <= 0) return from.reset();  // poll ignores -1
            const std::size_t room = limit - into.size();
            into.append(buffer, std::min(static_cast<std::size_t>(got), room));
            if (cut != nullptr && static_cast<std::size_t>(got) > room) *cut = true;
        }
    }

    void signalGroup(int number) const {
        // Before its setsid the child is not a group's leader yet; then it is still alone.
        if (kill(-pid_, number) != 0) kill(pid_, number);
    }

    void stop(End why) {
        outcome_.end = why;
        signalGroup(SIGTERM);
        awaitExit(seconds(spec_.grace_s));
        signalGroup(SIGKILL);
        awaitExit(kUnkillable);
        waitpid(pid_, nullptr, WNOHANG);
    }

    void awaitExit(Clock::duration limit) {
        const auto deadline = Clock::now() + limit;
        bool ended = false;
        while (!ended && Clock::now() < deadline) {
            ended = exited();
            // What it still writes is thrown away, but must not block it.
            std::string rest;
            bool cut = false;
            take(output_.read, rest, 0, &cut);
            take(errors_.read, outcome_.errors, spec_.errors_max, &outcome_.errors_cut);
            pollfd end = {pidfd_.get(), POLLIN, 0};
            if (!ended) poll(&end, 1, 5);
        }
    }

    void finish() {
        kill(-pid_, SIGKILL);  // whatever it left behind
        int status = 0;
        pid_t got = 0;
        do got = waitpid(pid_, &status, 0);
        while (got < 0 && errno == EINTR);
        StartFailure failure{};
        if (read(report_.read.get(), &failure, sizeof failure) == sizeof failure) {
            outcome_.failure =
                std::string(nameOf(failure.step)) + ": " + std::strerror(failure.error);
            return;
        }
        if (got != pid_) {
            outcome_.end = End::Reaped;
        } else if (WIFSIGNALED(status)) {
            outcome_.end = End::Signalled;
            outcome_.status = WTERMSIG(status);
        } else {
            outcome_.end = End::Exited;
            outcome_.status = WEXITSTATUS(status);
        }
    }

    const ChildSpec& spec_;
    ChildOutcome& outcome_;
    Pipe output_;
    Pipe errors_;
    Pipe report_;
    Fd pidfd_;
    pid_t pid_ = -1;
};

}  // namespace

ChildOutcome runChild(const ChildSpec& spec) {
    ChildOutcome outcome;
    outcome.limit_s = spec.timeout_s;
    const auto begin = Clock::now();
    if (spec.argv.empty() || spec.argv.front().empty() || spec.argv.front().front() != '/') {
        outcome.failure = "expected a program with an absolute path";
        return outcome;
    }
    Running child(spec, outcome);
    if (child.start()) child.watch();
    outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return outcome;
}

std::string ChildOutcome::describe() const {
    char number[32];
    switch (end) {
        case End::Exited:
            return "exited with status " + std::to_string(status);
        case End::Signalled:
            return "was ended by signal " + std::to_string(status) + " (" + strsignal(status) + ")";
        case End::TimedOut:
            std::snprintf(number, sizeof number, "%g", limit_s);
            return std::string("took longer than ") + number + " s";
        case End::TooMuchOutput:
            return "printed more than was expected";
        case End::Cancelled:
            return "was cancelled";
        case End::Reaped:
            return "ended, but its status was lost";
        case End::NotStarted:
            break;
    }
    return "could not be started: " + failure;
}

}  // namespace rdmatune
