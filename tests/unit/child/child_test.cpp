#include "tuner/base/child.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>

namespace rdmatune {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using End = ChildOutcome::End;

ChildSpec shell(const std::string& script) {
    ChildSpec spec;
    spec.argv = {"/bin/bash", "-c", script};
    spec.environment = {"PATH=/usr/bin:/bin"};
    return spec;
}

/// True when this process has no child left, dead or alive.
bool noChildLeft() {
    return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
}

/// Whether a process of this id is alive (a zombie of somebody else's counts as gone).
bool alive(const std::string& pid) {
    const int fd = open(("/proc/" + pid + "/stat").c_str(), O_RDONLY);
    if (fd < 0) return false;
    char text[512] = {};
    const ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    const std::string stat(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    const auto name_end = stat.rfind(')');
    return name_end != std::string::npos && stat.substr(name_end + 2, 1) != "Z";
}

TEST(Child, ReportsStatusOutputAndErrors) {
    const ChildOutcome outcome = runChild(shell("echo out; echo err >&2; exit 3"));
    EXPECT_EQ(outcome.end, End::Exited);
    EXPECT_EQ(outcome.status, 3);
    EXPECT_EQ(outcome.output, "out\n");
    EXPECT_EQ(outcome.errors, "err\n");
    EXPECT_FALSE(outcome.succeeded());
    EXPECT_EQ(outcome.describe(), "exited with status 3");
    EXPECT_TRUE(noChildLeft());
}

TEST(Child, ReadsInputLargerThanAPipe) {
    ChildSpec spec = shell("wc -c");
    spec.input.assign(3 << 20, 'x');
    EXPECT_EQ(runChild(spec).output, "3145728\n");
}

TEST(Child, UnreadInputDoesNoHarm) {
    ChildSpec spec = shell("exit 0");
    spec.input.assign(3 << 20, 'x');
    EXPECT_TRUE(runChild(spec).succeeded());
}

TEST(Child, GetsExactlyItsEnvironmentFolderAndArguments) {
    ChildSpec spec;
    spec.argv = {"/usr/bin/env"};
    spec.environment = {"A=1", "B=two words"};
    EXPECT_EQ(runChild(spec).output, "A=1\nB=two words\n");
    EXPECT_EQ(runChild(shell("pwd; umask; ulimit -c; echo $#")).output, "/\n0077\n0\n0\n");
}

TEST(Child, InheritsNoDescriptor) {
    const int fd = open("/dev/null", O_RDONLY);  // without close-on-exec, as plugins find them
    ASSERT_GT(fd, 2);
    ChildSpec spec;
    spec.argv = {"/bin/ls", "/proc/self/fd"};
    const ChildOutcome outcome = runChild(spec);
    close(fd);
    EXPECT_EQ(outcome.output, "0\n1\n2\n3\n");  // 3 is ls's own, reading the folder
}

TEST(Child, WorksWithStandardDescriptorsClosed) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
        close(0);
        close(1);
        close(2);
        const ChildOutcome outcome = runChild(shell("cat; echo err >&2"));
        _exit(outcome.succeeded() && outcome.errors == "err\n" ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
}

/// Ignores or restores a signal that glibc keeps to itself; handlers of its own are left alone.
void setReserved(int number, bool ignored) {
    const std::uint64_t action[8] = {ignored ? 1U : 0U};  // SIG_IGN, SIG_DFL
    EXPECT_EQ(syscall(SYS_rt_sigaction, number, action, nullptr, 8), 0);
}

TEST(Child, StartsWithDefaultSignals) {
    // As under a service manager that passes every signal on ignored. No thread is cancelled and no
    // id changed here, which is what glibc wants the two for.
    setReserved(32, true);
    setReserved(33, true);
    sigset_t blocked;
    sigset_t before;
    sigfillset(&blocked);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    void (*const old_pipe)(int) = std::signal(SIGPIPE, SIG_IGN);
    const ChildOutcome outcome = runChild(shell("grep -E 'Sig(Blk|Ign)' /proc/self/status"));
    std::signal(SIGPIPE, old_pipe);
    setReserved(32, false);
    setReserved(33, false);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, &before, &now);
    EXPECT_EQ(outcome.output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    EXPECT_EQ(sigismember(&now, SIGTERM), 1) << "the caller's own mask must be as it was";
}

TEST(Child, IsEndedAtItsTimeEvenIfItIgnoresSigterm) {
    ChildSpec spec = shell("trap '' TERM; echo begun; while :; do sleep 30; done");
    spec.timeout_s = 0.3;
    spec.grace_s = 0.1;
    const ChildOutcome outcome = runChild(spec);
    EXPECT_EQ(outcome.end, End::TimedOut);
    EXPECT_EQ(outcome.describe(), "took longer than 0.3 s");
    EXPECT_GE(outcome.seconds, 0.3);
    EXPECT_LT(outcome.seconds, 1.6);
    EXPECT_TRUE(noChildLeft());
}

TEST(Child, MayCleanUpAfterSigterm) {
    ChildSpec spec = shell("trap 'echo bye >&2; exit 1' TERM; while :; do sleep 0.02; done");
    spec.timeout_s = 0.2;
    spec.grace_s = 2;
    const ChildOutcome outcome = runChild(spec);
    EXPECT_EQ(outcome.end, End::TimedOut);
    EXPECT_THAT(outcome.errors, HasSubstr("bye\n"));  // bash itself says "Terminated" too
    EXPECT_LT(outcome.seconds, 1.5);
}

TEST(Child, GrandchildrenWithThePipeNeitherDelayNorSurvive) {
    const ChildOutcome outcome = runChild(shell("sleep 30 & echo $!"));
    EXPECT_EQ(outcome.end, End::Exited);
    EXPECT_LT(outcome.seconds, 3);
    std::string pid = outcome.output;
    ASSERT_FALSE(pid.empty());
    pid.pop_back();
    for (int i = 0; i < 100 && alive(pid); ++i) usleep(10000);
    EXPECT_FALSE(alive(pid));
}

TEST(Child, TooMuchOutputEndsIt) {
    ChildSpec spec = shell("cat /dev/zero");
    spec.output_max = 100000;
    const ChildOutcome outcome = runChild(spec);
    EXPECT_EQ(outcome.end, End::TooMuchOutput);
    EXPECT_LE(outcome.output.size(), spec.output_max + 16384);
    EXPECT_LT(outcome.seconds, 3);
    EXPECT_TRUE(noChildLeft());
    // Also when it has ended before we looked.
    ChildSpec quick = shell("head -c 5000 /dev/zero");
    quick.output_max = 4999;
    EXPECT_EQ(runChild(quick).end, End::TooMuchOutput);
    quick.output_max = 5000;
    EXPECT_EQ(runChild(quick).end, End::Exited);
}

TEST(Child, ErrorsBeyondTheLimitAreDropped) {
    ChildSpec spec = shell("head -c 300000 /dev/zero >&2; echo done");
    spec.errors_max = 1000;
    const ChildOutcome outcome = runChild(spec);
    EXPECT_EQ(outcome.output, "done\n");
    EXPECT_EQ(outcome.errors.size(), 1000U);
    EXPECT_TRUE(outcome.errors_cut);
}

TEST(Child, CanBeCancelled) {
    ChildSpec spec = shell("sleep 30");
    const auto begin = std::chrono::steady_clock::now();
    spec.cancelled = [begin] {
        return std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(100);
    };
    const ChildOutcome outcome = runChild(spec);
    EXPECT_EQ(outcome.end, End::Cancelled);
    EXPECT_LT(outcome.seconds, 2);
    EXPECT_TRUE(noChildLeft());
}

TEST(Child, SaysWhyItCouldNotStart) {
    ChildSpec spec;
    spec.argv = {"/nonexistent/rdma-tune"};
    const ChildOutcome outcome = runChild(spec);
    EXPECT_EQ(outcome.end, End::NotStarted);
    EXPECT_EQ(outcome.describe(), "could not be started: exec: No such file or directory");
    spec.argv = {"relative"};
    EXPECT_THAT(runChild(spec).describe(), HasSubstr("absolute path"));
    EXPECT_TRUE(noChildLeft());
}

TEST(Child, SaysWhichSignalEndedIt) {
    const ChildOutcome outcome = runChild(shell("kill -SEGV $$"));
    EXPECT_EQ(outcome.end, End::Signalled);
    EXPECT_EQ(outcome.status, SIGSEGV);
    EXPECT_THAT(outcome.describe(), StartsWith("was ended by signal 11"));
}

TEST(Child, SomebodyElseMayHaveTakenItsStatus) {
    void (*const old)(int) = std::signal(SIGCHLD, SIG_IGN);  // the kernel reaps at once
    const ChildOutcome outcome = runChild(shell("echo whole"));
    std::signal(SIGCHLD, old);
    EXPECT_EQ(outcome.end, End::Reaped);
    EXPECT_EQ(outcome.output, "whole\n");
    EXPECT_FALSE(outcome.succeeded());
}

TEST(Child, BecomesTheUserWithNoWayBack) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    ChildSpec spec = shell(
        "id -u; id -g; id -G; grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|Uid|Gid):' "
        "/proc/self/status; "
        "cat /proc/self/oom_score_adj");
    spec.user = ChildUser{20001, 20002, {20002, 20003}};
    const ChildOutcome outcome = runChild(spec);
    ASSERT_TRUE(outcome.succeeded()) << outcome.describe() << outcome.errors;
    EXPECT_EQ(outcome.output,
              "20001\n20002\n20002 20003\n"
              "Uid:\t20001\t20001\t20001\t20001\nGid:\t20002\t20002\t20002\t20002\n"
              "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
              "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\n0\n");
}

TEST(Child, BecomesTheUserFromSlurmstepdsUserInit) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    const pid_t pid = fork();  // the effective ids change for this test only
    ASSERT_GE(pid, 0);
    if (pid == 0) {
        if (setegid(20002) != 0 || seteuid(20001) != 0) _exit(2);
        ChildSpec spec = shell("grep -E '^(Uid|Gid|Groups|CapPrm):' /proc/self/status");
        spec.user = ChildUser{20001, 20002, {20002}};
        const ChildOutcome outcome = runChild(spec);
        const bool right = outcome.output ==
                           "Uid:\t20001\t20001\t20001\t20001\nGid:\t20002\t20002\t20002\t20002\n"
                           "Groups:\t20002 \nCapPrm:\t0000000000000000\n";
        // A child of the user's that hangs can be ended from here, too.
        ChildSpec slow = shell("sleep 30");
        slow.user = spec.user;
        slow.timeout_s = 0.2;
        const bool ended = runChild(slow).end == End::TimedOut && noChildLeft();
        _exit(right && ended && geteuid() == 20001 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
}

TEST(Child, RefusesToRunWhenItCannotBecomeTheUser) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
        if (setresgid(20002, 20002, 20002) != 0 || setresuid(20001, 20001, 20001) != 0) _exit(2);
        ChildSpec spec = shell("echo ran");
        spec.user = ChildUser{20005, 20005, {}};
        const ChildOutcome outcome = runChild(spec);
        _exit(outcome.end == End::NotStarted && outcome.output.empty() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
}

TEST(Child, WorksWhileOtherThreadsAllocate) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&stop] {
            while (!stop) {
                std::string text(10000, 'x');
                text.clear();
                text.shrink_to_fit();
            }
        });
    }
    ChildSpec spec = shell(":");
    spec.timeout_s = 60;  // the threads above may have all the CPUs there are
    for (int i = 0; i < 30; ++i) {
        const ChildOutcome outcome = runChild(spec);
        EXPECT_TRUE(outcome.succeeded()) << outcome.describe();
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
}

TEST(Child, SeveralAtOnceGetTheirOwnOutput) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int i = 0; i < 6; ++i) {
        threads.emplace_back([i, &wrong] {
            for (int round = 0; round < 5; ++round) {
                const std::string word = std::to_string(i * 10 + round);
                if (runChild(shell("echo " + word)).output != word + "\n") ++wrong;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(noChildLeft());
}

}  // namespace
}  // namespace rdmatune
