#include "tests/unit/fabric/agents.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace rdmatune::fabric::testing_support {
namespace {

/// An agent that dies while it is spoken to shows as a failed write, here as in the program.
[[maybe_unused]] const auto kIgnored = signal(SIGPIPE, SIG_IGN);

struct Pipes {
    Fd agent_input;
    Fd agent_output;
    Fd crew_input;
    Fd crew_output;
};

Pipes makePipes() {
    int down[2];
    int up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0)
        throw std::runtime_error("no pipe");
    return {Fd(down[0]), Fd(up[1]), Fd(down[1]), Fd(up[0])};
}

/// Runs the hook before each operation of the link it wraps.
class HookedLink : public Link {
  public:
    HookedLink(std::unique_ptr<Link> inner, Hook hook)
        : inner_(std::move(inner)), hook_(std::move(hook)) {}

    [[nodiscard]] std::string address() const override { return inner_->address(); }
    [[nodiscard]] Status connect(std::string_view peer, bool active, std::string_view cookie,
                                 Deadline deadline) override {
        if (Status status = hook_("connect"); !status) return status;
        return inner_->connect(peer, active, cookie, deadline);
    }
    [[nodiscard]] Result<Latency> pingPong(bool initiator, int rounds, Deadline deadline) override {
        if (Status status = hook_("ping"); !status) return status.error();
        return inner_->pingPong(initiator, rounds, deadline);
    }
    [[nodiscard]] Result<Throughput> send(std::size_t bytes, Clock::time_point until,
                                          Deadline deadline) override {
        if (Status status = hook_("send"); !status) return status.error();
        return inner_->send(bytes, until, deadline);
    }
    [[nodiscard]] Status receive(Deadline deadline) override {
        if (Status status = hook_("receive"); !status) return status;
        return inner_->receive(deadline);
    }

  private:
    std::unique_ptr<Link> inner_;
    Hook hook_;
};

/// A longer way: passes on what it gets, a while later, in both directions.
class Detour {
  public:
    Detour(std::string target, std::chrono::microseconds delay)
        : target_(std::move(target)), delay_(delay) {
        Result<Fd> listener = listenOn("127.0.0.1", port_);
        if (!listener) throw std::runtime_error(listener.error().message);
        listener_ = std::move(*listener);
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    [[nodiscard]] std::string address() const { return Endpoint{"127.0.0.1", port_}.str(); }

  private:
    static Deadline soon() { return Clock::now() + std::chrono::milliseconds(20); }

    void run(const std::stop_token& stop) {
        while (!stop.stop_requested() && !waitReady(listener_.get(), POLLIN, soon())) continue;
        const Fd near(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        const auto endpoint = Endpoint::parse(target_);
        if (!near.valid() || !endpoint) return;
        const Result<Fd> far = startConnect(*endpoint);
        if (!far || !waitReady(far->get(), POLLOUT, soon())) return;
        std::vector<char> bytes(1 << 20);
        while (!stop.stop_requested()) {
            pollfd entries[2] = {{near.get(), POLLIN, 0}, {far->get(), POLLIN, 0}};
            if (poll(entries, 2, 20) <= 0) continue;
            for (int i = 0; i < 2; ++i) {
                if (entries[i].revents == 0) continue;
                const ssize_t got = recv(entries[i].fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
                if (got <= 0) return;
                std::this_thread::sleep_for(delay_);
                if (!sendAll(entries[1 - i].fd, bytes.data(), static_cast<std::size_t>(got),
                             Clock::now() + std::chrono::seconds(2)))
                    return;
            }
        }
    }

    std::string target_;
    std::chrono::microseconds delay_;
    std::uint16_t port_ = 0;
    Fd listener_;
    std::jthread thread_;
};

/// A link that is reached, and that reaches, by a detour.
class DelayedLink : public Link {
  public:
    DelayedLink(std::unique_ptr<Link> inner, std::chrono::microseconds delay)
        : inner_(std::move(inner)),
          delay_(delay),
          to_here_(std::make_unique<Detour>(inner_->address(), delay)) {}

    [[nodiscard]] std::string address() const override { return to_here_->address(); }
    [[nodiscard]] Status connect(std::string_view peer, bool active, std::string_view cookie,
                                 Deadline deadline) override {
        if (!active) return inner_->connect(peer, active, cookie, deadline);
        to_here_ = std::make_unique<Detour>(std::string(peer), delay_);
        return inner_->connect(to_here_->address(), active, cookie, deadline);
    }
    [[nodiscard]] Result<Latency> pingPong(bool initiator, int rounds, Deadline deadline) override {
        return inner_->pingPong(initiator, rounds, deadline);
    }
    [[nodiscard]] Result<Throughput> send(std::size_t bytes, Clock::time_point until,
                                          Deadline deadline) override {
        return inner_->send(bytes, until, deadline);
    }
    [[nodiscard]] Status receive(Deadline deadline) override { return inner_->receive(deadline); }

  private:
    std::unique_ptr<Link> inner_;
    std::chrono::microseconds delay_;
    std::unique_ptr<Detour> to_here_;
};

class WrappedTransport : public Transport {
  public:
    using Wrap = std::function<std::unique_ptr<Link>(std::unique_ptr<Link>)>;
    WrappedTransport(std::unique_ptr<Transport> inner, Wrap wrap)
        : inner_(std::move(inner)), wrap_(std::move(wrap)) {}

    [[nodiscard]] ProfileTransport kind() const override { return inner_->kind(); }
    [[nodiscard]] ProfileGdr gdr() const override { return inner_->gdr(); }
    [[nodiscard]] int rails() const override { return inner_->rails(); }
    [[nodiscard]] std::string railName(int rail) const override { return inner_->railName(rail); }
    [[nodiscard]] std::string railIdentity(int rail) const override {
        return inner_->railIdentity(rail);
    }
    [[nodiscard]] double railNominalGbs(int rail) const override {
        return inner_->railNominalGbs(rail);
    }
    [[nodiscard]] Result<std::unique_ptr<Link>> open(int rail) override {
        Result<std::unique_ptr<Link>> link = inner_->open(rail);
        if (!link) return link;
        return wrap_(std::move(*link));
    }

  private:
    std::unique_ptr<Transport> inner_;
    Wrap wrap_;
};

}  // namespace

AgentSetup ordinaryAgent(int number, int input, int output) {
    AgentSetup setup;
    setup.number = number;
    setup.input = input;
    setup.output = output;
    setup.loopback = true;
    setup.host = "node" + std::to_string(number);
    setup.lifetime = std::chrono::seconds(20);
    setup.read_facts = [] { return NodeFacts{1, {}, {}}; };
    setup.make_transport = [](const TransportChoice& choice, const NodeFacts&,
                              std::vector<std::string>&) {
        return makeTcpTransport(choice.bind_address);
    };
    return setup;
}

Assignment ordinaryAssignment(int agents, double budget_s) {
    Assignment out;
    out.agents = agents;
    out.step_nodes = agents;
    out.budget_s = budget_s;
    out.start = Clock::now();
    for (int i = 0; i < agents; ++i) out.names.push_back("node" + std::to_string(i));
    return out;
}

ThreadAgents::ThreadAgents(int count, const Change& change)
    : errors_(static_cast<std::size_t>(count)) {
    for (int number = 0; number < count; ++number) {
        Pipes pipes = makePipes();
        crew_.adopt(std::move(pipes.crew_input), std::move(pipes.crew_output));
        threads_.emplace_back([this, number, change, input = std::move(pipes.agent_input),
                               output = std::move(pipes.agent_output)] {
            AgentSetup setup = ordinaryAgent(number, input.get(), output.get());
            if (change) change(number, setup);
            if (Status status = runAgent(setup); !status)
                errors_[static_cast<std::size_t>(number)] = status.error().message;
        });
    }
}

const std::vector<std::string>& ThreadAgents::errors() {
    crew_.finish(Clock::now());
    for (std::thread& thread : threads_)
        if (thread.joinable()) thread.join();
    return errors_;
}

ThreadAgents::~ThreadAgents() {
    (void)errors();
}

ProcessAgents::ProcessAgents(int count, const Change& change) {
    for (int number = 0; number < count; ++number) {
        Pipes pipes = makePipes();
        const pid_t pid = fork();
        if (pid == 0) {
            // Only what this agent needs stays open: a dead agent's pipe must end.
            crew_ = Crew();
            pipes.crew_input.reset();
            pipes.crew_output.reset();
            AgentSetup setup =
                ordinaryAgent(number, pipes.agent_input.get(), pipes.agent_output.get());
            if (change) change(number, setup);
            const Status status = runAgent(setup);
            _exit(status ? 0 : 1);
        }
        pids_.push_back(pid);
        crew_.adopt(std::move(pipes.crew_input), std::move(pipes.crew_output));
    }
}

ProcessAgents::~ProcessAgents() {
    crew_.finish(Clock::now());
    for (const pid_t pid : pids_) {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
    }
}

std::unique_ptr<Transport> hooked(std::unique_ptr<Transport> inner, Hook hook) {
    return std::make_unique<WrappedTransport>(
        std::move(inner), [hook = std::move(hook)](std::unique_ptr<Link> link) {
            return std::unique_ptr<Link>(new HookedLink(std::move(link), hook));
        });
}

std::unique_ptr<Transport> delayed(std::unique_ptr<Transport> inner,
                                   std::chrono::microseconds delay) {
    return std::make_unique<WrappedTransport>(
        std::move(inner), [delay](std::unique_ptr<Link> link) {
            return std::unique_ptr<Link>(new DelayedLink(std::move(link), delay));
        });
}

}  // namespace rdmatune::fabric::testing_support
