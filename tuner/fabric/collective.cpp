#include "tuner/fabric/collective.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "tuner/fabric/allreduce.hpp"

namespace rdmatune::fabric {
namespace {

constexpr int kRuns = 5;
/// Values repeat with this period, so that every sum is a small whole number, exact in a float.
constexpr std::size_t kPeriod = 5;
/// Polls without any progress before the CPU is offered to others: a few microseconds, after which
/// a yield costs little where nobody else wants it, and where nodes or a driver's threads share the
/// CPU the message may be waiting for just that.
constexpr int kIdlePolls = 32;

double micros(Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
}

float valueOf(std::size_t node, std::size_t element) {
    return static_cast<float>((node + element) % kPeriod + 1);
}

/// Runs one allreduce to its end.
Status drive(std::vector<std::unique_ptr<Allreduce>>& parts, Deadline deadline) {
    int idle = 0;
    for (int polls = 1;; ++polls) {
        bool all_done = true;
        bool moved = false;
        for (const auto& part : parts) {
            const Result<bool> progress = part->advance();
            if (!progress) return progress.error();
            moved = moved || *progress;
            all_done = all_done && part->done();
        }
        if (all_done) return Done{};
        idle = moved ? 0 : idle + 1;
        if (idle % kIdlePolls == kIdlePolls - 1) sched_yield();
        if (polls % 64 == 0 && Clock::now() > deadline)
            return Error{"time is up in the middle of a collective; a node may have stopped"};
    }
}

/// Element by element: how many nodes' values went into each sum.
Status verify(std::span<const float> data, int nodes, std::string_view algorithm, int node) {
    std::array<float, kPeriod> expected{};
    for (std::size_t residue = 0; residue < kPeriod; ++residue)
        for (int other = 0; other < nodes; ++other)
            expected[residue] += valueOf(static_cast<std::size_t>(other), residue);
    for (std::size_t i = 0; i < data.size(); ++i)
        if (data[i] != expected[i % kPeriod])
            return Error{
                fmt::format("the {} allreduce gave a wrong sum on node {}: element {} of {} "
                            "is {} instead of {}",
                            algorithm, node, i, data.size(), data[i], expected[i % kPeriod])};
    return Done{};
}

/// The node's part in all collectives of a call.
class Runner {
  public:
    Runner(const CollectiveLinks& links, Deadline deadline) : links_(links), deadline_(deadline) {}

    /// Median of the runs, microseconds; 0 where the nodes agreed that there is no time.
    Result<double> median(std::size_t elements, bool tree, int& runs) {
        std::vector<double> times;
        for (int run = -1; run < kRuns; ++run) {
            const Result<bool> stop = timeIsShort();
            if (!stop) return stop.error();
            if (*stop) break;
            data_.resize(elements);
            for (std::size_t i = 0; i < elements; ++i)
                data_[i] = valueOf(static_cast<std::size_t>(links_.node), i);
            auto parts = tree ? treeParts(links_, data_) : ringParts(links_, data_);
            const auto begin = Clock::now();
            if (Status status = drive(parts, deadline_); !status) return status.error();
            last_ = Clock::now() - begin;
            if (Status status = verify(data_, links_.nodes, tree ? "tree" : "ring", links_.node);
                !status)
                return status.error();
            if (run >= 0) times.push_back(micros(last_));  // the first one warms up
        }
        runs = static_cast<int>(times.size());
        if (times.empty()) return 0.0;
        std::ranges::sort(times);
        return times[times.size() / 2];
    }

  private:
    /// A barrier that carries every node's opinion on whether to go on, so that all stop together.
    Result<bool> timeIsShort() {
        // A quarter of the time is kept back: a loaded machine may take much longer than last time.
        const auto reserve = std::max<Clock::duration>(8 * last_, (deadline_ - begin_) / 4);
        const bool mine = Clock::now() + reserve > deadline_;
        std::vector<float> votes(static_cast<std::size_t>(links_.nodes), mine ? 1.0F : 0.0F);
        auto parts = ringParts(links_, votes);
        if (Status status = drive(parts, deadline_); !status) return status.error();
        return votes.front() > 0;
    }

    const CollectiveLinks& links_;
    Deadline deadline_;
    Clock::time_point begin_ = Clock::now();
    std::vector<float> data_;
    Clock::duration last_{};
};

std::optional<Error> incomplete(const CollectiveLinks& links) {
    if (links.nodes < 2) return Error{"a collective needs two nodes at least"};
    if (links.to_next.empty() || links.to_next.size() != links.from_prev.size())
        return Error{"the ring's links are not complete"};
    for (const auto& tree : links.trees)
        if (tree.to_parent.size() != tree.from_parent.size() ||
            tree.from_child[0].size() != tree.to_child[0].size() ||
            tree.from_child[1].size() != tree.to_child[1].size())
            return Error{"a tree's links are not complete"};
    return std::nullopt;
}

}  // namespace

Result<std::vector<CollectiveTime>> runCollectives(const CollectiveLinks& links,
                                                   std::span<const std::size_t> sizes,
                                                   Deadline deadline) {
    if (const auto error = incomplete(links)) return *error;
    std::vector<CollectiveTime> out;
    Runner runner(links, deadline);
    for (const std::size_t bytes : sizes) {
        CollectiveTime time{.bytes = bytes};
        const std::size_t elements = std::max<std::size_t>(bytes / sizeof(float), 1);
        int ring_runs = 0;
        int tree_runs = 0;
        const Result<double> ring = runner.median(elements, false, ring_runs);
        if (!ring) return ring.error();
        const Result<double> tree = runner.median(elements, true, tree_runs);
        if (!tree) return tree.error();
        time.ring_us = *ring;
        time.tree_us = *tree;
        time.runs = std::min(ring_runs, tree_runs);
        if (ring_runs == 0 && tree_runs == 0) break;  // all nodes have agreed to stop
        out.push_back(time);
    }
    return out;
}

}  // namespace rdmatune::fabric
