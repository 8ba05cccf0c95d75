#include "tuner/fabric/allreduce.hpp"

#include <algorithm>
#include <array>
#include <deque>

namespace rdmatune::fabric {
namespace {

/// What goes on as soon as it has arrived. 128 KiB: long enough to be worth a message on a fast
/// network, short enough that a few are under way at once in a buffer of a MiB.
constexpr std::size_t kSliceElements = 32768;

/// Part `index` of `parts` nearly equal ones.
std::span<float> partOf(std::span<float> data, std::size_t index, std::size_t parts) {
    const std::size_t begin = data.size() * index / parts;
    const std::size_t end = data.size() * (index + 1) / parts;
    return data.subspan(begin, end - begin);
}

std::span<float> sliceOf(std::span<float> data, std::size_t slice) {
    const std::size_t begin = std::min(slice * kSliceElements, data.size());
    return data.subspan(begin, std::min(kSliceElements, data.size() - begin));
}

std::size_t slicesIn(std::size_t elements) {
    return (elements + kSliceElements - 1) / kSliceElements;
}

void add(std::span<float> into, std::span<const float> from) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
}

/// An outgoing link with the messages that wait for it; nothing at the edge of a pattern.
class Outlet {
  public:
    explicit Outlet(Link* link = nullptr) : link_(link), leaving_(link != nullptr) {}
    Status post(std::span<const float> data) {
        if (link_ == nullptr || data.empty()) return Done{};
        waiting_.push_back(data);
        return flush();
    }
    /// A link takes one message at a time.
    Status flush() {
        for (;;) {
            if (leaving_) {
                const Result<bool> left = link_->flush();
                if (!left) return left.error();
                if (!*left) return Done{};
                leaving_ = false;
            }
            if (waiting_.empty()) return Done{};
            if (Status status = link_->post(std::as_bytes(waiting_.front())); !status)
                return status;
            waiting_.pop_front();
            leaving_ = true;
        }
    }
    [[nodiscard]] bool flushed() const { return !leaving_ && waiting_.empty(); }

  private:
    Link* link_;
    std::deque<std::span<const float>> waiting_;
    bool leaving_;  ///< at first what an earlier use of the link has left behind
};

/// The data is cut into one chunk per node. In step k node i receives chunk i - k - 1 from its
/// predecessor: in the first nodes - 1 steps to add its own values, afterwards the finished sums.
/// What was received in one step is what is sent in the next, slice by slice.
class RingPart final : public Allreduce {
  public:
    RingPart(int node, int nodes, Link* to_next, Link* from_prev, std::span<float> data)
        : node_(static_cast<std::size_t>(node)),
          nodes_(static_cast<std::size_t>(nodes)),
          slices_(std::max<std::size_t>(slicesIn((data.size() + nodes_ - 1) / nodes_), 1)),
          next_(to_next),
          prev_(from_prev),
          data_(data),
          arrived_(std::min(kSliceElements, data.size())) {}

    Result<bool> advance() override {
        if (!begun_) {
            begun_ = true;
            for (std::size_t slice = 0; slice < slices_; ++slice)
                if (Status status = next_.post(sliceOf(chunk(node_), slice)); !status)
                    return status.error();
        }
        if (Status status = next_.flush(); !status) return status.error();
        bool moved = false;
        while (received_ < total()) {
            const Result<bool> taken = takeNext();
            if (!taken) return taken.error();
            if (!*taken) break;
            moved = true;
        }
        return moved;
    }

    bool done() const override { return begun_ && received_ == total() && next_.flushed(); }

  private:
    [[nodiscard]] std::size_t total() const { return 2 * (nodes_ - 1) * slices_; }
    [[nodiscard]] std::span<float> chunk(std::size_t index) const {
        return partOf(data_, index % nodes_, nodes_);
    }

    Result<bool> takeNext() {
        const std::size_t step = received_ / slices_;
        const std::span<float> slice =
            sliceOf(chunk(node_ + 2 * nodes_ - step - 1), received_ % slices_);
        const bool reduce = step < nodes_ - 1;
        if (!slice.empty()) {
            const std::span<float> target =
                reduce ? std::span(arrived_).first(slice.size()) : slice;
            const Result<bool> taken = prev_->take(std::as_writable_bytes(target));
            if (!taken || !*taken) return taken;
            if (reduce) add(slice, target);
        }
        ++received_;
        if (step + 1 < 2 * (nodes_ - 1))
            if (Status status = next_.post(slice); !status) return status.error();
        return true;
    }

    std::size_t node_, nodes_, slices_;
    Outlet next_;
    Link* prev_;
    std::span<float> data_;
    std::vector<float> arrived_;
    bool begun_ = false;
    std::size_t received_ = 0;  ///< slices, over all steps
};

/// Slice by slice: the children's values are added and the sum goes up; what the root has summed
/// comes down again.
class TreePart final : public Allreduce {
  public:
    struct Ends {
        Link* to_parent = nullptr;
        Link* from_parent = nullptr;
        std::array<Link*, 2> from_child{};
        std::array<Link*, 2> to_child{};
    };

    TreePart(const Ends& ends, std::span<float> data)
        : ends_(ends),
          up_(ends.to_parent),
          down_{Outlet(ends.to_child[0]), Outlet(ends.to_child[1])},
          data_(data),
          slices_(slicesIn(data.size())),
          arrived_(std::min(kSliceElements, data.size())) {}

    Result<bool> advance() override {
        for (Outlet* outlet : {&up_, &down_[0], &down_[1]})
            if (Status status = outlet->flush(); !status) return status.error();
        bool moved = false;
        for (auto step : {&TreePart::reduceNext, &TreePart::broadcastNext})
            for (;;) {
                const Result<bool> went = (this->*step)();
                if (!went) return went.error();
                if (!*went) break;
                moved = true;
            }
        return moved;
    }

    bool done() const override {
        return finished_ == slices_ && up_.flushed() && down_[0].flushed() && down_[1].flushed();
    }

  private:
    Result<bool> reduceNext() {
        if (reduced_ == slices_) return false;
        const std::span<float> slice = sliceOf(data_, reduced_);
        for (; child_ < 2; ++child_) {
            if (ends_.from_child[child_] == nullptr) continue;
            const auto target = std::span(arrived_).first(slice.size());
            const Result<bool> taken =
                ends_.from_child[child_]->take(std::as_writable_bytes(target));
            if (!taken || !*taken) return taken;
            add(slice, target);
        }
        child_ = 0;
        ++reduced_;
        if (Status status = up_.post(slice); !status) return status.error();
        return true;
    }

    Result<bool> broadcastNext() {
        if (finished_ == slices_) return false;
        const std::span<float> slice = sliceOf(data_, finished_);
        if (ends_.from_parent == nullptr) {
            if (finished_ == reduced_) return false;  // the root: nothing summed that is not sent
        } else {
            const Result<bool> taken = ends_.from_parent->take(std::as_writable_bytes(slice));
            if (!taken || !*taken) return taken;
        }
        ++finished_;
        for (Outlet& outlet : down_)
            if (Status status = outlet.post(slice); !status) return status.error();
        return true;
    }

    Ends ends_;
    Outlet up_;
    std::array<Outlet, 2> down_;
    std::span<float> data_;
    std::size_t slices_;
    std::vector<float> arrived_;
    std::size_t child_ = 0;     ///< whose values are due for the slice being reduced
    std::size_t reduced_ = 0;   ///< slices summed over this node's subtree
    std::size_t finished_ = 0;  ///< slices that hold everybody's sum
};

Link* at(const CollectiveLinks::Rails& rails, std::size_t rail) {
    return rail < rails.size() ? rails[rail] : nullptr;
}

}  // namespace

std::vector<std::unique_ptr<Allreduce>> ringParts(const CollectiveLinks& links,
                                                  std::span<float> data) {
    std::vector<std::unique_ptr<Allreduce>> out;
    const std::size_t rails = links.to_next.size();
    for (std::size_t rail = 0; rail < rails; ++rail)
        out.push_back(std::make_unique<RingPart>(links.node, links.nodes, links.to_next[rail],
                                                 links.from_prev[rail], partOf(data, rail, rails)));
    return out;
}

std::vector<std::unique_ptr<Allreduce>> treeParts(const CollectiveLinks& links,
                                                  std::span<float> data) {
    std::vector<std::unique_ptr<Allreduce>> out;
    const std::size_t rails = links.to_next.size();
    for (std::size_t tree = 0; tree < links.trees.size(); ++tree) {
        const auto& place = links.trees[tree];
        const std::span<float> half = partOf(data, tree, links.trees.size());
        for (std::size_t rail = 0; rail < rails; ++rail) {
            TreePart::Ends ends;
            ends.to_parent = at(place.to_parent, rail);
            ends.from_parent = at(place.from_parent, rail);
            for (std::size_t child = 0; child < 2; ++child) {
                ends.from_child[child] = at(place.from_child[child], rail);
                ends.to_child[child] = at(place.to_child[child], rail);
            }
            out.push_back(std::make_unique<TreePart>(ends, partOf(half, rail, rails)));
        }
    }
    return out;
}

}  // namespace rdmatune::fabric
