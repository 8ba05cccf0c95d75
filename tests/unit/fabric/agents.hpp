// Agents of a pretended job inside the test: as threads, or as processes that can be killed.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tuner/fabric/agent.hpp"
#include "tuner/fabric/conductor.hpp"

namespace rdmatune::fabric::testing_support {

/// Changes one agent's setup before it starts.
using Change = std::function<void(int number, AgentSetup& setup)>;

/// An agent over loopback TCP with one GPU and no HCA.
[[nodiscard]] AgentSetup ordinaryAgent(int number, int input, int output);

/// A controller's assignment for `agents` agents.
[[nodiscard]] Assignment ordinaryAssignment(int agents, double budget_s);

class ThreadAgents {
  public:
    ThreadAgents(int count, const Change& change);
    ~ThreadAgents();
    [[nodiscard]] Crew& crew() { return crew_; }
    /// How each agent ended; complete once the agents have been joined.
    [[nodiscard]] const std::vector<std::string>& errors();

  private:
    Crew crew_;
    std::vector<std::thread> threads_;
    std::vector<std::string> errors_;
};

/// Each agent is a forked process.
class ProcessAgents {
  public:
    ProcessAgents(int count, const Change& change);
    ~ProcessAgents();
    [[nodiscard]] Crew& crew() { return crew_; }

  private:
    Crew crew_;
    std::vector<pid_t> pids_;
};

/// A transport whose links do something before each operation; `what` is "connect", "ping", "send"
/// or "receive". An error returned is the operation's.
using Hook = std::function<Status(const std::string& what)>;
[[nodiscard]] std::unique_ptr<Transport> hooked(std::unique_ptr<Transport> inner, Hook hook);

/// A transport whose links lead over a detour on which every message takes `delay` longer.
[[nodiscard]] std::unique_ptr<Transport> delayed(std::unique_ptr<Transport> inner,
                                                 std::chrono::microseconds delay);

}  // namespace rdmatune::fabric::testing_support
