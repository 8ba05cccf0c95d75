// The ring: every rank sends to the next, chunk by chunk, step by step.
#include <algorithm>
#include <cmath>

#include "simulator.hpp"

namespace simulation {
namespace {

/// The first loops are simulated one by one; after these they only repeat.
constexpr int kLoops = 6;

/// All channels run in step, so one stands for all with the sum of their bandwidths. With equal
/// nodes one node stands for all: its first rank receives what its last one sends.
class Ring {
  public:
    Ring(const Network& network, const Local& local, int steps, double slice_bytes)
        : net_(network), local_(local), steps_(steps), slice_(slice_bytes) {
        nodes_ = network.uniform() ? 1 : network.nodes;
        ranks_ = nodes_ * network.ranks_per_node;
        const std::size_t keep = static_cast<std::size_t>(local.slices + 2 * local.slots + 1);
        begun_.assign(keep, std::vector<double>(static_cast<std::size_t>(ranks_), 0));
        arrived_ = begun_;
        ended_ = begun_;
        link_.assign(static_cast<std::size_t>(ranks_), 0);
        rank_ = link_;
    }

    /// When everything has arrived after each loop, without the base.
    std::vector<double> run(int loops) {
        std::vector<double> ends;
        for (int loop = 0; loop < loops; ++loop) {
            for (int step = 0; step < steps_; ++step)
                for (int slice = 0; slice < local_.slices; ++slice) sendUnit(step);
            double end = 0;
            for (int back = 1; back <= local_.slices; ++back)
                for (const double t : at(ended_, unit_ - back)) end = std::max(end, t);
            ends.push_back(end);
        }
        return ends;
    }

  private:
    using Times = std::vector<double>;
    static Times& at(std::vector<Times>& history, long unit) {
        const long size = static_cast<long>(history.size());
        return history[static_cast<std::size_t>((unit % size + size) % size)];
    }

    void sendUnit(int step) {
        Times begun(static_cast<std::size_t>(ranks_));
        Times arrived(begun.size());
        Times ended(begun.size());
        for (int r = 0; r < ranks_; ++r) {
            const auto i = static_cast<std::size_t>(r);
            const int next = (r + 1) % ranks_;
            const int previous = (r + ranks_ - 1) % ranks_;
            const bool leaves = (r + 1) % net_.ranks_per_node == 0;
            const int node = r / net_.ranks_per_node;
            const int to = (node + 1) % net_.nodes;
            const double alpha = leaves ? net_.alpha(node, to) : 0;
            // All ranks but the first of the ring's order forward what they received a step before.
            double begin = leaves && local_.streams ? rank_[i] : std::max(link_[i], rank_[i]);
            if (step > 0)
                begin = std::max(
                    begin, at(arrived_, unit_ - local_.slices)[static_cast<std::size_t>(previous)]);
            // A slot is free again when the receiver has sent its content on, and has said so.
            // Between nodes there is a buffer on either side: the sender's and the receiver's.
            const int slots = leaves ? 2 * local_.slots : local_.slots;
            const long freed = unit_ - slots + local_.slices;
            if (unit_ >= slots && freed < unit_)
                begin = std::max(begin, at(begun_, freed)[static_cast<std::size_t>(next)] + alpha);
            const double gbs =
                leaves ? std::min(net_.beta(node), net_.beta(to % std::max(1, net_.nodes))) /
                             local_.wire
                       : local_.intra_gbs;
            const double transfer = slice_ / (gbs * 1e3);
            const double processing = slice_ / (local_.rank_gbs * 1e3);
            begun[i] = begin;
            rank_[i] = begin + processing;
            // When the rank has all of the part, and has passed it on.
            double whole = begin + processing;
            if (step > 0 && local_.streams)
                whole = std::max(
                    whole, at(ended_, unit_ - local_.slices)[static_cast<std::size_t>(previous)]);
            if (leaves) {
                const double posted = std::max(link_[i], local_.streams ? whole : begin);
                link_[i] = posted + transfer;
                ended[i] = std::max(posted + transfer, whole) + local_.inter_hop_us + alpha;
                arrived[i] = ended[i];
            } else {
                link_[i] = begin + transfer;
                ended[i] = std::max(begin + transfer, whole) + local_.intra_hop_us;
                arrived[i] = local_.streams ? begin + local_.intra_hop_us : ended[i];
            }
        }
        at(ended_, unit_) = std::move(ended);
        at(begun_, unit_) = std::move(begun);
        at(arrived_, unit_) = std::move(arrived);
        ++unit_;
    }

    const Network& net_;
    const Local& local_;
    int steps_;
    double slice_;
    int nodes_ = 1;
    int ranks_ = 1;
    long unit_ = 0;
    std::vector<Times> begun_;
    std::vector<Times> arrived_;  // when the next rank may begin with it
    std::vector<Times> ended_;    // when the next rank has all of it
    Times link_;
    Times rank_;
};

}  // namespace

double ringTime(const Network& network, const Local& local, Collective what, double bytes) {
    const int ranks = network.nodes * network.ranks_per_node;
    const int steps = (what == Collective::AllReduce ? 2 : 1) * (ranks - 1);
    const double part = bytes / ranks;
    const double loops = std::ceil(part / local.chunk_bytes);
    const double chunk = part / loops;
    Ring ring(network, local, steps, chunk / local.slices);
    const std::vector<double> ends = ring.run(static_cast<int>(std::min<double>(loops, kLoops)));
    double time = ends.back();
    if (loops > kLoops)
        time +=
            (loops - kLoops) * (ends[kLoops - 1] - ends[kLoops / 2 - 1]) / (kLoops - kLoops / 2);
    return local.base_us + time;
}

}  // namespace simulation
