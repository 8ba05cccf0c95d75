#include "spank/interrupt.hpp"

#include <pthread.h>

namespace rdmatune::spank {
namespace {

volatile std::sig_atomic_t noted = 0;

void remember(int number) {
    noted = number;
}

}  // namespace

Interrupt::Interrupt() {
    noted = 0;
    struct sigaction ours {};
    ours.sa_handler = remember;
    sigset_t open;
    sigemptyset(&open);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
        auto& [changed, old] = before_[i];
        if (sigaction(kSignals[i], nullptr, &old) != 0) continue;
        if (old.sa_handler == SIG_IGN) continue;  // nohup's wish
        changed = sigaction(kSignals[i], &ours, nullptr) == 0;
        if (changed) sigaddset(&open, kSignals[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &open, &mask_);
}

Interrupt::~Interrupt() {
    // The mask first: nothing may reach srun's own handlers that it expected to be blocked.
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    for (std::size_t i = 0; i < kSignals.size(); ++i)
        if (before_[i].first) sigaction(kSignals[i], &before_[i].second, nullptr);
}

bool Interrupt::happened() {
    return noted != 0;
}

}  // namespace rdmatune::spank
