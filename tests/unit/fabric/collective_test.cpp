#include "tuner/fabric/collective.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "tuner/fabric/schedule.hpp"
#include "tuner/fabric/trees.hpp"

namespace rdmatune::fabric {
namespace {

using std::chrono::seconds;

/// Bytes on their way from one thread to another; holds no more than `kCapacity`.
struct Pipe {
    static constexpr std::size_t kCapacity = 5000;
    std::mutex mutex;
    std::deque<std::byte> bytes;
    bool broken = false;
    bool corrupting = false;
};

/// Both ends of a pipe as Links: the sending end posts, the receiving end takes.
class PipeLink final : public Link {
  public:
    explicit PipeLink(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) {}
    std::string address() const override { return "pipe"; }
    Status connect(std::string_view, bool, std::string_view, Deadline) override { return Done{}; }
    Result<Latency> pingPong(bool, int, Deadline) override { return Latency{}; }
    Result<Throughput> send(std::size_t, Clock::time_point, Deadline) override {
        return Throughput{};
    }
    Status receive(Deadline) override { return Done{}; }
    Status post(std::span<const std::byte> bytes) override {
        if (!pending_.empty()) return Error{"the previous message has not left yet"};
        pending_.push_back(bytes);
        return Done{};
    }
    Result<bool> flush() override {
        const std::lock_guard lock(pipe_->mutex);
        if (pipe_->broken) return Error{"the pipe broke"};
        while (!pending_.empty() && pipe_->bytes.size() < Pipe::kCapacity) {
            auto& first = pending_.front();
            const auto now = std::min(first.size(), Pipe::kCapacity - pipe_->bytes.size());
            pipe_->bytes.insert(pipe_->bytes.end(), first.begin(),
                                first.begin() + static_cast<std::ptrdiff_t>(now));
            if (pipe_->corrupting && now > 100)  // data, not votes
                pipe_->bytes.back() ^= std::byte{1};
            first = first.subspan(now);
            if (first.empty()) pending_.pop_front();
        }
        return pending_.empty();
    }
    Result<bool> take(std::span<std::byte> bytes) override {
        const std::lock_guard lock(pipe_->mutex);
        while (taken_ < bytes.size() && !pipe_->bytes.empty()) {
            bytes[taken_++] = pipe_->bytes.front();
            pipe_->bytes.pop_front();
        }
        if (taken_ < bytes.size()) return false;
        taken_ = 0;
        return true;
    }

  private:
    std::shared_ptr<Pipe> pipe_;
    std::deque<std::span<const std::byte>> pending_;
    std::size_t taken_ = 0;
};

/// All nodes' links over pipes, wired along the schedule's own edges.
struct World {
    std::vector<CollectiveLinks> nodes;
    std::vector<std::shared_ptr<Pipe>> pipes;
    std::vector<std::unique_ptr<Link>> links;

    World(int count, int rails) : nodes(static_cast<std::size_t>(count)) {
        for (int node = 0; node < count; ++node) {
            at(node).node = node;
            at(node).nodes = count;
        }
        for (int node = 0; node < count; ++node) {
            join(at(node).to_next, at((node + 1) % count).from_prev, rails);
            for (int tree = 0; tree < 2; ++tree) {
                const auto index = static_cast<std::size_t>(tree);
                const TreePlace place = treePlace(tree, node, count);
                for (std::size_t child = 0; child < 2; ++child) {
                    if (place.child[child] < 0) continue;
                    auto& below = at(place.child[child]).trees[index];
                    auto& here = at(node).trees[index];
                    join(below.to_parent, here.from_child[child], rails);
                    join(here.to_child[child], below.from_parent, rails);
                }
            }
        }
    }
    CollectiveLinks& at(int node) { return nodes[static_cast<std::size_t>(node)]; }

    void join(CollectiveLinks::Rails& from, CollectiveLinks::Rails& to, int rails) {
        for (int rail = 0; rail < rails; ++rail) {
            pipes.push_back(std::make_shared<Pipe>());
            for (auto* end : {&from, &to}) {
                links.push_back(std::make_unique<PipeLink>(pipes.back()));
                end->push_back(links.back().get());
            }
        }
    }

    std::vector<Result<std::vector<CollectiveTime>>> run(const std::vector<std::size_t>& sizes,
                                                         Clock::duration time) {
        std::vector<Result<std::vector<CollectiveTime>>> out(nodes.size(), Error{"not run"});
        std::vector<std::thread> threads;
        const Deadline deadline = Clock::now() + time;
        for (std::size_t node = 0; node < nodes.size(); ++node)
            threads.emplace_back(
                [&, node] { out[node] = runCollectives(nodes[node], sizes, deadline); });
        for (auto& thread : threads) thread.join();
        return out;
    }
};

class Collectives : public testing::TestWithParam<std::pair<int, int>> {};

/// The sums are checked by runCollectives itself; WrongSumsAreFound shows that it does.
TEST_P(Collectives, SumOverAllNodes) {
    World world(GetParam().first, GetParam().second);
    const std::vector<std::size_t> sizes = {4, 1000, 70000};
    for (const auto& times : world.run(sizes, seconds(120))) {
        ASSERT_TRUE(times.ok()) << times.error().message;
        ASSERT_EQ(times->size(), sizes.size());
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            EXPECT_EQ((*times)[i].bytes, sizes[i]);
            EXPECT_GT((*times)[i].ring_us, 0);
            EXPECT_GT((*times)[i].tree_us, 0);
            EXPECT_GT((*times)[i].runs, 0);
        }
    }
    for (const auto& pipe : world.pipes) EXPECT_TRUE(pipe->bytes.empty());
}

INSTANTIATE_TEST_SUITE_P(NodesAndRails, Collectives,
                         testing::Values(std::pair{2, 1}, std::pair{3, 2}, std::pair{4, 1},
                                         std::pair{5, 1}, std::pair{8, 2}));

TEST(CollectivesTrouble, WrongSumsAreFound) {
    World world(3, 1);
    world.pipes.front()->corrupting = true;
    bool found = false;
    for (const auto& times : world.run({1000}, seconds(2)))
        if (!times.ok() && times.error().message.find("wrong sum") != std::string::npos)
            found = true;
    EXPECT_TRUE(found);
}

TEST(CollectivesTrouble, ABrokenLinkIsAnErrorAndNobodyHangs) {
    World world(4, 1);
    world.pipes.front()->broken = true;
    const auto begin = Clock::now();
    for (const auto& times : world.run({1000}, seconds(1))) EXPECT_FALSE(times.ok());
    EXPECT_LT(Clock::now() - begin, seconds(20));
}

TEST(CollectivesTrouble, MissingLinksAreNamed) {
    EXPECT_FALSE(runCollectives(CollectiveLinks{}, {}, Clock::now()).ok());
    World world(2, 1);
    world.at(0).from_prev.clear();
    const auto times = runCollectives(world.at(0), {}, Clock::now());
    ASSERT_FALSE(times.ok());
    EXPECT_THAT(times.error().message, testing::HasSubstr("ring"));
}

TEST(CollectivesTrouble, AllNodesStopTogetherWhenTimeIsShort) {
    World world(3, 1);
    const std::vector<std::size_t> sizes(1000, 40000);
    const auto all = world.run(sizes, std::chrono::seconds(2));
    ASSERT_TRUE(all[0].ok()) << all[0].error().message;
    EXPECT_LT(all[0]->size(), sizes.size());
    for (const auto& times : all) {
        ASSERT_TRUE(times.ok()) << times.error().message;
        EXPECT_EQ(times->size(), all[0]->size());
    }
}

}  // namespace
}  // namespace rdmatune::fabric
