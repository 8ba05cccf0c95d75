#include "tuner/fabric/slow_rails.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/unit/fabric/agents.hpp"
#include "tuner/fabric/assemble.hpp"

namespace rdmatune::fabric {
namespace {

using testing::HasSubstr;

constexpr int kRails = 8;
const Thresholds kVerbs = thresholdsFor(false, false, 2.1, 0.93);

/// A ring whose edge from `node` carries rate(node, rail) GB/s, with 1 % of noise.
std::vector<EdgeResult> ring(int nodes, const std::function<double(int, int)>& rate,
                             double noise = 0.01, unsigned seed = 7) {
    std::mt19937 random(seed);
    std::normal_distribution<double> wander(1, noise);
    std::vector<EdgeResult> out;
    for (const Edge& edge : allEdges(nodes)) {
        if (edge.pattern != Pattern::Ring) continue;
        EdgeResult result;
        result.edge = edge;
        for (int rail = 0; rail < kRails; ++rail) {
            result.rails.push_back(rate(edge.from, rail) * wander(random));
            result.gbs += result.rails.back();
        }
        out.push_back(std::move(result));
    }
    return out;
}

double healthy(int, int) {
    return 48;
}

TEST(SlowRails, NoneWhereAllAreAlike) {
    for (const int nodes : {2, 3, 5, 64})
        EXPECT_TRUE(findSlowRails(ring(nodes, healthy), nodes, kVerbs).empty());
}

TEST(SlowRails, AnHcaOfANodeIsNamedThatTheSumDoesNotShow) {
    // Node 3's rail 5 came up at half its width: slow to the next node and from the previous one.
    const auto edges = ring(
        6, [](int from, int rail) { return rail == 5 && (from == 3 || from == 2) ? 24.0 : 48.0; });
    EXPECT_TRUE(findSuspects(edges, kVerbs).empty()) << "7 of 8 rails are well";
    const auto slow = findSlowRails(edges, 6, kVerbs);
    ASSERT_EQ(slow.size(), 1U);
    EXPECT_TRUE(slow[0].samePlace({5, 3}));
    EXPECT_NEAR(slow[0].gbs, 24, 2);
    EXPECT_NEAR(slow[0].others, 48, 2);
}

TEST(SlowRails, OneDirectionAloneIsAMatterOfBothEnds) {
    const auto slow = findSlowRails(
        ring(6, [](int from, int rail) { return rail == 0 && from == 5 ? 12.0 : 48.0; }), 6,
        kVerbs);
    ASSERT_EQ(slow.size(), 1U);
    EXPECT_TRUE(slow[0].samePlace({0, 5, 0}));
}

TEST(SlowRails, TwoNodesCannotTellWhichEndItIs) {
    const auto slow =
        findSlowRails(ring(2, [](int, int rail) { return rail == 2 ? 24.0 : 48.0; }), 2, kVerbs);
    ASSERT_EQ(slow.size(), 2U);
    for (const SlowRail& one : slow) EXPECT_EQ(one.other, 1 - one.node);
}

TEST(SlowRails, AWholeNodeIsNotAMatterOfRails) {
    EXPECT_TRUE(
        findSlowRails(ring(6, [](int from, int) { return from == 2 ? 24.0 : 48.0; }), 6, kVerbs)
            .empty());
}

TEST(SlowRails, ANetworkThatWandersIsNotAccused) {
    const auto once = [](unsigned seed) {
        return findSlowRails(ring(256, healthy, 0.08, seed), 256, kVerbs);
    };
    for (unsigned seed = 1; seed < 10; ++seed)
        EXPECT_TRUE(slowInBoth(once(seed), once(seed + 100)).empty()) << seed;
}

TEST(SlowRails, OneRailIsTheNode) {
    auto edges = ring(4, [](int from, int) { return from == 1 ? 10.0 : 48.0; });
    for (EdgeResult& edge : edges) edge.rails.resize(1);
    EXPECT_TRUE(findSlowRails(edges, 4, kVerbs).empty());
}

TEST(SlowRails, OnlyWhatIsSlowTwiceCounts) {
    const std::vector<SlowRail> first = {{5, 3, -1, 24, 48}, {0, 1, 2, 30, 48}};
    const auto both = slowInBoth(first, {{5, 3, -1, 26, 48}, {0, 2, 3, 30, 48}});
    ASSERT_EQ(both.size(), 1U);
    EXPECT_TRUE(both[0].samePlace({5, 3}));
    EXPECT_DOUBLE_EQ(both[0].gbs, 26);
}

TEST(SlowRails, TheProfilesWorstIsWhatARingOverAllRailsGets) {
    FabricProfile profile;
    profile.ring = {2000, 2100, 400000, 380000};
    profile.tree = {2000, 2100, 360000, 150000};
    addSlowRail(0.5, profile);
    EXPECT_EQ(profile.ring.beta_mbps, 400000U);
    EXPECT_EQ(profile.ring.beta_worst_mbps, 200000U);
    EXPECT_EQ(profile.tree.beta_worst_mbps, 150000U) << "already worse";
}

// ---- a whole measurement -----------------------------------------------------------------------

/// A pretended rail: connects to anybody, moves nothing, and tells the figure it is given.
class PretendedLink : public Link {
  public:
    PretendedLink(int node, double gbs_to_others, std::function<double(int)> to)
        : node_(node), gbs_(gbs_to_others), to_(std::move(to)) {}
    [[nodiscard]] std::string address() const override { return std::to_string(node_); }
    [[nodiscard]] Status connect(std::string_view peer, bool, std::string_view, Deadline) override {
        peer_ = std::stoi(std::string(peer));
        return Done{};
    }
    [[nodiscard]] Result<Latency> pingPong(bool, int, Deadline) override {
        return Latency{1.9, 2, 3, 1000};
    }
    [[nodiscard]] Result<Throughput> send(std::size_t, Clock::time_point, Deadline) override {
        return Throughput{std::min(gbs_, to_(peer_)) * 1e9, 1};
    }
    [[nodiscard]] Status receive(Deadline) override { return Done{}; }

  private:
    int node_;
    double gbs_;
    std::function<double(int)> to_;
    int peer_ = -1;
};

/// A tenth, since these agents share a machine, which excuses more.
class PretendedRails : public Transport {
  public:
    explicit PretendedRails(int node) : node_(node) {}
    [[nodiscard]] ProfileTransport kind() const override { return ProfileTransport::InfiniBand; }
    [[nodiscard]] ProfileGdr gdr() const override { return ProfileGdr::NotTried; }
    [[nodiscard]] int rails() const override { return kRails; }
    [[nodiscard]] std::string railName(int rail) const override {
        return "mlx5_" + std::to_string(rail);
    }
    [[nodiscard]] std::string railIdentity(int) const override { return "IB"; }
    [[nodiscard]] double railNominalGbs(int) const override { return 50; }
    [[nodiscard]] Result<std::unique_ptr<Link>> open(int rail) override {
        const auto of = [rail](int node) { return node == 2 && rail == 5 ? 4.8 : 48.0; };
        return std::unique_ptr<Link>(std::make_unique<PretendedLink>(node_, of(node_), of));
    }

  private:
    int node_;
};

TEST(SlowRails, AMeasurementNamesTheHca) {
    testing_support::ThreadAgents agents(6, [](int number, AgentSetup& setup) {
        setup.read_facts = [] {
            NodeFacts facts{8, {}, {}};
            for (int rail = 0; rail < kRails; ++rail)
                facts.hcas.push_back({"mlx5_" + std::to_string(rail), "InfiniBand", "", 400});
            return facts;
        };
        setup.make_transport =
            [number](const TransportChoice&, const NodeFacts&,
                     std::vector<std::string>&) -> Result<std::unique_ptr<Transport>> {
            return std::unique_ptr<Transport>(std::make_unique<PretendedRails>(number));
        };
    });
    const Outcome outcome = conduct(agents.crew(), testing_support::ordinaryAssignment(6, 20));
    ASSERT_TRUE(outcome.usable) << outcome.reason;
    ASSERT_EQ(outcome.slow_rails.size(), 1U);
    const std::string text = describe(outcome.slow_rails[0], outcome.members, outcome.agreement);
    EXPECT_THAT(
        text,
        HasSubstr(
            "rail 6: node2's mlx5_5 is slow: 4.80 GB/s where the other rails have 48.00 GB/s"));
    EXPECT_THAT(outcome.notes, testing::Contains(text));
    EXPECT_STREQ(outcome.profile.slow_node, "node2");
    EXPECT_EQ(outcome.profile.ring.beta_mbps, 384000U);
    EXPECT_EQ(outcome.profile.ring.beta_worst_mbps, 38400U);
}

}  // namespace
}  // namespace rdmatune::fabric
