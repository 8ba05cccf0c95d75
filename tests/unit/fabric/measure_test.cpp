// Whole measurements over loopback TCP: healthy ones, and each kind of fault.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/unit/fabric/agents.hpp"
#include "tuner/base/version.hpp"

namespace rdmatune::fabric {
namespace {

using namespace testing_support;
using std::chrono::milliseconds;

/// The budget and what a loaded machine may add before a thread runs again.
constexpr double kSlack_s = 2;

double secondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string all(const Outcome& outcome) {
    std::string text = outcome.reason;
    for (const std::string& note : outcome.notes) text += "\n" + note;
    return text;
}

bool says(const Outcome& outcome, std::string_view text) {
    return all(outcome).find(text) != std::string::npos;
}

/// A machine that is too busy for the slots leaves figures open; then it must be said.
void expectCompleteOrSaid(const Outcome& outcome) {
    EXPECT_NE(outcome.profile.complete, says(outcome, "incomplete: ")) << all(outcome);
}

AgentSetup& withHook(AgentSetup& setup, Hook hook) {
    setup.make_transport = [hook = std::move(hook)](
                               const TransportChoice& choice, const NodeFacts&,
                               std::vector<std::string>&) -> Result<std::unique_ptr<Transport>> {
        Result<std::unique_ptr<Transport>> inner = makeTcpTransport(choice.bind_address);
        if (!inner) return inner;
        return hooked(std::move(*inner), hook);
    };
    return setup;
}

class HealthyJob : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Agents, HealthyJob, testing::Values(2, 3, 4, 5, 8, 16));

TEST_P(HealthyJob, IsMeasuredCompletely) {
    const int count = GetParam();
    ThreadAgents agents(count, nullptr);
    const Outcome outcome = conduct(agents.crew(), ordinaryAssignment(count, 20));
    for (const std::string& error : agents.errors()) EXPECT_EQ(error, "");
    ASSERT_TRUE(outcome.usable) << all(outcome);
    expectCompleteOrSaid(outcome);
    EXPECT_EQ(outcome.profile.nodes, static_cast<unsigned>(count));
    EXPECT_EQ(outcome.profile.nodes_measured, static_cast<unsigned>(count));
    EXPECT_EQ(outcome.profile.transport, ProfileTransport::Tcp);
    for (const PatternFigures& pattern : {outcome.profile.ring, outcome.profile.tree}) {
        EXPECT_GT(pattern.alpha_ns, 0U);
        EXPECT_GE(pattern.alpha_worst_ns, pattern.alpha_ns);
        EXPECT_GT(pattern.beta_mbps, 0U);
        EXPECT_LE(pattern.beta_worst_mbps, pattern.beta_mbps);
    }
    EXPECT_EQ(outcome.members.size(), static_cast<std::size_t>(count));
    char text[kProfileTextMax];
    EXPECT_GT(formatProfile(outcome.profile, text, sizeof text), 0U);
}

TEST(Measure, TwoJobsAtOnceDoNotMeet) {
    Outcome first;
    std::thread other([&first] {
        ThreadAgents agents(4, nullptr);
        first = conduct(agents.crew(), ordinaryAssignment(4, 20));
    });
    ThreadAgents agents(4, nullptr);
    const Outcome second = conduct(agents.crew(), ordinaryAssignment(4, 20));
    other.join();
    for (const Outcome& outcome : {first, second}) {
        EXPECT_TRUE(outcome.usable) << all(outcome);
        EXPECT_EQ(outcome.members.size(), 4U);
        EXPECT_FALSE(says(outcome, "refused a connection")) << all(outcome);
        expectCompleteOrSaid(outcome);
    }
}

TEST(Measure, ANodeBehindALongWayIsNamed) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer makes every way as long";
#endif
    ThreadAgents agents(6, [](int, AgentSetup& setup) {
        setup.make_transport =
            [host = setup.host](const TransportChoice& choice, const NodeFacts&,
                                std::vector<std::string>&) -> Result<std::unique_ptr<Transport>> {
            Result<std::unique_ptr<Transport>> inner = makeTcpTransport(choice.bind_address);
            if (!inner || host != "node4") return inner;
            return delayed(std::move(*inner), std::chrono::milliseconds(4));
        };
    });
    const Outcome outcome = conduct(agents.crew(), ordinaryAssignment(6, 20));
    ASSERT_TRUE(outcome.usable) << all(outcome);
    EXPECT_STREQ(outcome.profile.slow_node, "node4") << all(outcome);
    EXPECT_TRUE(says(outcome, "node node4 is slow")) << all(outcome);
}

/// At which operation, and which one of them, the agent dies.
struct Death {
    const char* operation;
    int count;
};
class DyingAgent : public testing::TestWithParam<Death> {};
INSTANTIATE_TEST_SUITE_P(Moments, DyingAgent,
                         testing::Values(Death{"hello", 0}, Death{"setup", 0}, Death{"connect", 2},
                                         Death{"ping", 0}, Death{"ping", 3}, Death{"send", 0},
                                         Death{"receive", 0}, Death{"send", 1}),
                         [](const auto& moment) {
                             return std::string(moment.param.operation) +
                                    std::to_string(moment.param.count);
                         });

TEST_P(DyingAgent, EndsWithinTheBudgetWithAProfileOfTheOthers) {
    const Death death = GetParam();
    const std::string operation = death.operation;
    const auto start = Clock::now();
    constexpr double kBudget_s = 6;
    ProcessAgents agents(6, [&](int number, AgentSetup& setup) {
        if (number != 2) return;
        if (operation == "hello")
            setup.read_facts = []() -> NodeFacts {
                raise(SIGKILL);
                return {};
            };
        if (operation == "setup")
            setup.make_transport =
                [](const TransportChoice&, const NodeFacts&,
                   std::vector<std::string>&) -> Result<std::unique_ptr<Transport>> {
                raise(SIGKILL);
                return Error{"dead"};
            };
        auto seen = std::make_shared<std::atomic<int>>(0);
        if (operation != "hello" && operation != "setup")
            withHook(setup,
                     [seen, operation, count = death.count](const std::string& what) -> Status {
                         if (what == operation && (*seen)++ == count) kill(getpid(), SIGKILL);
                         return Done{};
                     });
    });
    const Outcome outcome = conduct(agents.crew(), ordinaryAssignment(6, kBudget_s));
    EXPECT_LT(secondsSince(start), kBudget_s + kSlack_s);
    ASSERT_TRUE(outcome.usable) << all(outcome);
    EXPECT_FALSE(outcome.profile.complete);
    EXPECT_TRUE(says(outcome, "node2")) << all(outcome);
}

TEST(Measure, WithOneOfTwoAgentsDeadThereIsAReason) {
    const auto start = Clock::now();
    ProcessAgents agents(2, [](int number, AgentSetup& setup) {
        if (number == 1)
            withHook(setup, [](const std::string& what) -> Status {
                if (what == "ping") kill(getpid(), SIGKILL);
                return Done{};
            });
    });
    const Outcome outcome = conduct(agents.crew(), ordinaryAssignment(2, 3));
    EXPECT_LT(secondsSince(start), 3 + kSlack_s);
    EXPECT_FALSE(outcome.usable);
    EXPECT_NE(outcome.reason.find("too little could be measured"), std::string::npos)
        << outcome.reason;
}

TEST(Measure, AllAgentsDeadIsSaidAtOnce) {
    const auto start = Clock::now();
    ProcessAgents agents(3, [](int, AgentSetup&) { _exit(3); });
    const Outcome outcome = conduct(agents.crew(), ordinaryAssignment(3, 10));
    EXPECT_LT(secondsSince(start), 3) << "nobody is left to wait for";
    EXPECT_FALSE(outcome.usable);
    EXPECT_NE(outcome.reason.find("no agent answered"), std::string::npos) << outcome.reason;
}

TEST(Measure, ALateIntroductionLeavesTheNodeOut) {
    const auto start = Clock::now();
    ProcessAgents agents(4, [](int number, AgentSetup& setup) {
        if (number == 3)
            setup.read_facts = [] {
                std::this_thread::sleep_for(milliseconds(2500));
                return NodeFacts{};
            };
    });
    const Outcome outcome = conduct(agents.crew(), ordinaryAssignment(4, 4));
    EXPECT_LT(secondsSince(start), 4 + kSlack_s);
    ASSERT_TRUE(outcome.usable) << all(outcome);
    EXPECT_EQ(outcome.profile.nodes, 4U);
    EXPECT_EQ(outcome.profile.nodes_measured, 3U);
    EXPECT_FALSE(outcome.profile.complete);
    EXPECT_TRUE(says(outcome, "not measured: node3 did not answer in time")) << all(outcome);
}

TEST(Measure, AnAgentThatHangsCostsOnlyItsEdges) {
    const auto start = Clock::now();
    ProcessAgents agents(5, [](int number, AgentSetup& setup) {
        if (number == 1)
            withHook(setup, [](const std::string& what) -> Status {
                if (what == "ping") std::this_thread::sleep_for(std::chrono::seconds(60));
                return Done{};
            });
    });
    const Outcome outcome = conduct(agents.crew(), ordinaryAssignment(5, 5));
    EXPECT_LT(secondsSince(start), 5 + kSlack_s);
    EXPECT_FALSE(outcome.profile.complete);
    EXPECT_TRUE(says(outcome, "node1") && says(outcome, "stopped answering")) << all(outcome);
}

TEST(Measure, APeerThatNeverConnectsCostsOnlyItsEdges) {
    const auto start = Clock::now();
    ThreadAgents agents(5, [](int number, AgentSetup& setup) {
        if (number == 0)
            withHook(setup, [](const std::string& what) -> Status {
                if (what == "connect") return Error{"connection refused by a filter"};
                return Done{};
            });
    });
    const Outcome outcome = conduct(agents.crew(), ordinaryAssignment(5, 6));
    EXPECT_LT(secondsSince(start), 6 + kSlack_s);
    ASSERT_TRUE(outcome.usable) << all(outcome);
    EXPECT_FALSE(outcome.profile.complete);
    EXPECT_TRUE(says(outcome, "edges have no figure")) << all(outcome);
}

TEST(Measure, AnotherWireVersionIsRefusedWithTheNodesName) {
    int down[2];
    int up[2];
    ASSERT_EQ(pipe(down), 0);
    ASSERT_EQ(pipe(up), 0);
    Crew crew;
    crew.adopt(Fd(down[1]), Fd(up[0]));
    const Fd agent_input(down[0]);
    Fd agent_output(up[1]);
    Hello hello;
    hello.number = 0;
    hello.host = "old01";
    hello.wire = kWireVersion + 1;
    hello.version = "9.9";
    ASSERT_TRUE(writeText(agent_output.get(), helloLines(hello), Clock::now() + milliseconds(500)));
    const Outcome outcome = conduct(crew, ordinaryAssignment(1, 2));
    EXPECT_FALSE(outcome.usable);
    EXPECT_NE(outcome.reason.find("old01: another version of rdma-tune"), std::string::npos)
        << outcome.reason;
}

TEST(Measure, ATransportThatCannotBeHadAnywhereIsTheReason) {
    ThreadAgents agents(3, [](int, AgentSetup& setup) {
        setup.make_transport = [](const TransportChoice&, const NodeFacts&,
                                  std::vector<std::string>&) -> Result<std::unique_ptr<Transport>> {
            return Error{"no interface is up"};
        };
    });
    const Outcome outcome = conduct(agents.crew(), ordinaryAssignment(3, 5));
    EXPECT_FALSE(outcome.usable);
    EXPECT_NE(outcome.reason.find("no interface is up"), std::string::npos) << outcome.reason;
}

TEST(Measure, VerbsThatFailSomewhereMeanTcpEverywhere) {
    const NodeFacts facts{2, {{"mlx5_0", "InfiniBand", "fe800000:00000000", 200}}, {}};
    ThreadAgents agents(3, [&](int number, AgentSetup& setup) {
        setup.read_facts = [facts] { return facts; };
        setup.make_transport =
            [number](const TransportChoice& choice, const NodeFacts&,
                     std::vector<std::string>&) -> Result<std::unique_ptr<Transport>> {
            if (choice.verbs && number == 1) return Error{"mlx5_0: memlock limit of 64 KB"};
            return makeTcpTransport(choice.bind_address);
        };
    });
    const Outcome outcome = conduct(agents.crew(), ordinaryAssignment(3, 10));
    ASSERT_TRUE(outcome.usable) << all(outcome);
    EXPECT_EQ(outcome.profile.transport, ProfileTransport::Tcp);
    EXPECT_EQ(outcome.agreement.rails, 1) << "the plan still uses the HCAs";
    EXPECT_TRUE(says(outcome, "node1: mlx5_0: memlock limit of 64 KB")) << all(outcome);
}

}  // namespace
}  // namespace rdmatune::fabric
