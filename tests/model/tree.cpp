// The double binary tree over nodes, with a chain of ranks inside each node: up to the root,
// reducing, and down again. Half of the message goes through each of the two trees.
#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>

#include "simulator.hpp"

namespace simulation {

std::vector<int> treeParents(int tree, int nodes) {
    // A node's height is its lowest set bit; its parent is the next higher one beside it, or below
    // it where there is none beside.
    std::vector<int> parent(static_cast<std::size_t>(nodes), -1);
    for (int node = 1; node < nodes; ++node) {
        const int height = node & -node;
        const int right = (node - height) | (2 * height);
        parent[static_cast<std::size_t>(node)] =
            right < nodes && right != node ? right : node - height;
    }
    if (tree == 0) return parent;
    // The second tree is the first one mirrored, or, for odd counts, moved on by one.
    std::vector<int> second(parent.size(), -1);
    for (int node = 0; node < nodes; ++node) {
        const int image = nodes % 2 == 0 ? nodes - 1 - node : (node + 1) % nodes;
        const int up = parent[static_cast<std::size_t>(node)];
        const int up_image = up < 0 ? -1 : nodes % 2 == 0 ? nodes - 1 - up : (up + 1) % nodes;
        second[static_cast<std::size_t>(image)] = up_image;
    }
    return second;
}

namespace {

/// How many chunks are simulated one by one. More would follow at the pace of the second quarter to
/// the third: before, the slots of every level fill; at the end the last chunks have the network to
/// themselves.
int simulatedChunks(int nodes) {
    int levels = 1;
    while ((1 << levels) < nodes) ++levels;
    return 96 + 96 * levels;
}

/// One direction of one edge of one tree, with its slots.
struct Connection {
    int from = 0;
    int to = 0;
    int tree = 0;
    bool up = false;
    int sent = 0;     // chunks handed to the NIC
    int ready = 0;    // chunks that the sender has
    int credits = 0;  // free slots
};

struct Event {
    enum Kind { Out, In, Delivered, Credit, Local } kind = Out;
    double time = 0;
    long order = 0;  // of creation, so that equal times keep their order
    int connection = -1;
    int chunk = 0;
    int node = -1;
    int tree = 0;
    bool operator<(const Event& other) const {
        return time != other.time ? time > other.time : order > other.order;
    }
};

class Trees {
  public:
    Trees(const Network& network, const Local& local, double chunk_bytes, int chunks)
        : net_(network), local_(local), chunk_(chunk_bytes), chunks_(chunks) {
        const auto n = static_cast<std::size_t>(network.nodes);
        out_free_.assign(n, 0);
        in_free_.assign(n, 0);
        for (int t = 0; t < 2; ++t) {
            parents_[t] = treeParents(t, network.nodes);
            place_[t].resize(n);
            for (int node = 0; node < network.nodes; ++node) {
                Place& place = place_[t][static_cast<std::size_t>(node)];
                place.got.assign(static_cast<std::size_t>(chunks), 0);
                if (parents_[t][static_cast<std::size_t>(node)] < 0) continue;
                const int parent = parents_[t][static_cast<std::size_t>(node)];
                Place& above = place_[t][static_cast<std::size_t>(parent)];
                place.up = addConnection(node, parent, t, true);
                const int down = addConnection(parent, node, t, false);
                place.from_parent = down;
                above.children.push_back(place.up);
                above.down.push_back(down);
            }
        }
    }

    /// When each chunk is everywhere, without the base.
    std::vector<double> run() {
        // The chain inside the node delivers its chunks one after the other.
        const int hops = net_.ranks_per_node - 1;
        const double pace = chunk_ / (std::min(local_.intra_gbs, local_.rank_gbs) / 2 * 1e3);
        // Line by line, only the last rank's pace is added; else every rank waits for whole chunks.
        const double chain =
            hops * local_.intra_hop_us + (local_.streams ? std::min(hops, 1) : hops) * pace;
        for (int t = 0; t < 2; ++t)
            for (int node = 0; node < net_.nodes; ++node)
                for (int k = 0; k < chunks_; ++k)
                    push({Event::Local, chain + k * pace, 0, -1, k, node, t});
        ends_.assign(static_cast<std::size_t>(chunks_), 0);
        while (!events_.empty()) {
            const Event event = events_.top();
            events_.pop();
            handle(event);
        }
        for (double& end : ends_) end += chain;
        for (std::size_t k = 1; k < ends_.size(); ++k) ends_[k] = std::max(ends_[k], ends_[k - 1]);
        return ends_;
    }

  private:
    struct Place {
        int up = -1;                // connection to the parent
        int from_parent = -1;       // connection from the parent
        std::vector<int> children;  // connections that end here, going up
        std::vector<int> down;      // connections that begin here, going down
        std::vector<int> got;       // contributions per chunk: own, and one per child
        double busy_up = 0;
        double busy_down = 0;
    };

    int addConnection(int from, int to, int tree, bool up) {
        // A buffer on either side: the sender's and the receiver's.
        connections_.push_back({from, to, tree, up, 0, 0, 2 * local_.slots});
        return static_cast<int>(connections_.size()) - 1;
    }
    void push(Event event) {
        event.order = ++order_;
        events_.push(event);
    }
    Place& placeOf(int tree, int node) { return place_[tree][static_cast<std::size_t>(node)]; }

    /// Hands to the NIC what is ready and has a slot.
    void advance(int index, double now) {
        Connection& c = connections_[static_cast<std::size_t>(index)];
        while (c.sent < c.ready && c.credits > 0) {
            --c.credits;
            push({Event::Out, now, 0, index, c.sent++, -1, c.tree});
        }
    }
    void freeSlot(int index, double now) {
        const Connection& c = connections_[static_cast<std::size_t>(index)];
        push({Event::Credit, now + net_.alpha(c.to, c.from), 0, index, 0, -1, c.tree});
    }
    double processing() const { return chunk_ / (local_.rank_gbs / 2 * 1e3); }

    void handle(const Event& event) {
        switch (event.kind) {
            case Event::Out: {
                const Connection& c = connections_[static_cast<std::size_t>(event.connection)];
                double& free = out_free_[static_cast<std::size_t>(c.from)];
                const double begin = std::max(event.time, free);
                free = begin + transfer(c.from);
                push({Event::In, begin + net_.alpha(c.from, c.to), 0, event.connection, event.chunk,
                      -1, c.tree});
                break;
            }
            case Event::In: {
                const Connection& c = connections_[static_cast<std::size_t>(event.connection)];
                double& free = in_free_[static_cast<std::size_t>(c.to)];
                const double duration = std::max(transfer(c.from), transfer(c.to));
                const double begin = std::max(event.time, free);
                free = begin + transfer(c.to);
                push({Event::Delivered, begin + duration + local_.inter_hop_us, 0, event.connection,
                      event.chunk, -1, c.tree});
                break;
            }
            case Event::Delivered: {
                const Connection c = connections_[static_cast<std::size_t>(event.connection)];
                if (c.up)
                    contribute(c.tree, c.to, event.chunk, event.time);
                else
                    passDown(c.tree, c.to, event.chunk, event.time);
                break;
            }
            case Event::Credit: {
                ++connections_[static_cast<std::size_t>(event.connection)].credits;
                advance(event.connection, event.time);
                break;
            }
            case Event::Local:
                contribute(event.tree, event.node, event.chunk, event.time);
                break;
        }
    }

    /// A part of a chunk has come up to `node`; with the last part it goes on.
    void contribute(int tree, int node, int chunk, double now) {
        Place& place = placeOf(tree, node);
        if (++place.got[static_cast<std::size_t>(chunk)] <
            1 + static_cast<int>(place.children.size()))
            return;
        const double begin = std::max(now, place.busy_up);
        place.busy_up = begin + processing();
        for (const int child : place.children) freeSlot(child, begin);
        if (place.up < 0) {
            passDown(tree, node, chunk, begin);
            return;
        }
        ++connections_[static_cast<std::size_t>(place.up)].ready;
        advance(place.up, begin);
    }

    /// A finished chunk has come down to `node` (or been finished there, at the root).
    void passDown(int tree, int node, int chunk, double now) {
        Place& place = placeOf(tree, node);
        const double begin = std::max(now, place.busy_down);
        place.busy_down = begin + processing();
        if (place.from_parent >= 0) freeSlot(place.from_parent, begin);
        for (const int down : place.down) {
            ++connections_[static_cast<std::size_t>(down)].ready;
            advance(down, begin);
        }
        double& end = ends_[static_cast<std::size_t>(chunk)];
        end = std::max(end, place.busy_down);
    }

    double transfer(int node) const { return chunk_ * local_.wire / (net_.beta(node) * 1e3); }

    const Network& net_;
    const Local& local_;
    double chunk_;
    int chunks_;
    long order_ = 0;
    std::vector<int> parents_[2];
    std::vector<Place> place_[2];
    std::vector<Connection> connections_;
    std::vector<double> out_free_;
    std::vector<double> in_free_;
    std::vector<double> ends_;
    std::priority_queue<Event> events_;
};

}  // namespace

double treeTime(const Network& network, const Local& local, double bytes) {
    const double half = bytes / 2;
    // NCCL cuts the chunks down until they fill the depth of the tree several times.
    const double depth = std::max(1.0, std::log2(network.nodes)) + network.ranks_per_node - 1;
    double chunk = local.chunk_bytes / 2;
    while (half / chunk < depth * 4 && chunk > local.least_chunk_bytes / 2) chunk /= 2;
    const double count = std::ceil(half / chunk);
    chunk = half / count;
    const int simulated = simulatedChunks(network.nodes);
    Trees trees(network, local, chunk, static_cast<int>(std::min<double>(count, simulated)));
    const std::vector<double> ends = trees.run();
    double time = ends.back();
    if (count > simulated) {
        const auto from = static_cast<std::size_t>(simulated / 2);
        const auto to = static_cast<std::size_t>(simulated * 3 / 4);
        time += (count - simulated) * (ends[to] - ends[from]) / static_cast<double>(to - from);
    }
    return local.base_us + time;
}

}  // namespace simulation
