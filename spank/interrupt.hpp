// Notices Ctrl-C and scancel while srun waits for us.
#pragma once

#include <array>
#include <csignal>
#include <utility>

namespace rdmatune::spank {

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT to this process are noted instead of taking
/// their usual way. srun blocks them in every thread and collects them in one of its own, which
/// only remembers them until the step runs: minutes late for a user who pressed Ctrl-C. The kernel
/// gives a signal to the main thread first when that does not block it. One at a time.
class Interrupt {
  public:
    Interrupt();
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    [[nodiscard]] static bool happened();

  private:
    static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    std::array<std::pair<bool, struct sigaction>, kSignals.size()> before_{};
    sigset_t mask_{};
};

}  // namespace rdmatune::spank
