#include "spank/interrupt.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tuner/base/child.hpp"

namespace rdmatune::spank {
namespace {

/// As in srun: signals blocked everywhere, one thread collecting them.
class LikeSrun {
  public:
    LikeSrun() {
        sigemptyset(&set_);
        sigaddset(&set_, SIGINT);
        sigaddset(&set_, SIGTERM);
        sigaddset(&set_, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &set_, &before_);
        collector_ = std::thread([this] {
            for (int number = 0; number != SIGUSR1;)
                if (sigwait(&set_, &number) == 0 && number != SIGUSR1) collected_ = number;
        });
    }
    ~LikeSrun() {
        pthread_kill(collector_.native_handle(), SIGUSR1);
        collector_.join();
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    LikeSrun(const LikeSrun&) = delete;
    LikeSrun& operator=(const LikeSrun&) = delete;
    [[nodiscard]] int collected() const { return collected_; }

  private:
    sigset_t set_{};
    sigset_t before_{};
    std::thread collector_;
    volatile int collected_ = 0;
};

TEST(Interrupt, TakesTheSignalBeforeSrunsOwnThread) {
    const LikeSrun srun;
    for (const int number : {SIGINT, SIGTERM}) {
        const Interrupt watch;
        EXPECT_FALSE(Interrupt::happened());
        kill(getpid(), number);
        for (int i = 0; i < 200 && !Interrupt::happened(); ++i) usleep(1000);
        EXPECT_TRUE(Interrupt::happened());
        EXPECT_EQ(srun.collected(), 0);
    }
}

TEST(Interrupt, EndsAChildAtOnce) {
    const LikeSrun srun;
    ChildSpec spec;
    spec.argv = {"/bin/sleep", "30"};
    spec.timeout_s = 20;
    spec.cancelled = Interrupt::happened;
    std::thread user([] {
        usleep(100000);
        kill(getpid(), SIGINT);
    });
    const Interrupt watch;
    const ChildOutcome outcome = runChild(spec);
    user.join();
    EXPECT_EQ(outcome.end, ChildOutcome::End::Cancelled);
    EXPECT_LT(outcome.seconds, 3);
}

TEST(Interrupt, LeavesEverythingAsItWas) {
    struct sigaction before {};
    sigaction(SIGTERM, nullptr, &before);
    sigset_t mask_before;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_before);
    { const Interrupt watch; }
    struct sigaction after {};
    sigaction(SIGTERM, nullptr, &after);
    sigset_t mask_after;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_after);
    EXPECT_EQ(before.sa_handler, after.sa_handler);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
        EXPECT_EQ(sigismember(&mask_before, number), sigismember(&mask_after, number));
}

TEST(Interrupt, AnIgnoredSignalStaysIgnored) {
    void (*const old)(int) = std::signal(SIGHUP, SIG_IGN);
    {
        const Interrupt watch;
        kill(getpid(), SIGHUP);
        usleep(10000);
        EXPECT_FALSE(Interrupt::happened());
    }
    std::signal(SIGHUP, old);
}

}  // namespace
}  // namespace rdmatune::spank
