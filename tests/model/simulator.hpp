// A discrete-event simulation of ring and double binary tree over nodes of several ranks. It judges
// the choices of tuner/model and shares no code with it: no header of tuner/ is included here, and
// the double binary tree is built anew.
//
// What is simulated: every chunk of every step, one after the other along each connection; slots
// that bound what a connection has in flight; NICs that all messages of a node share, in and out;
// pipelining from chunk to chunk. What is taken as given, because no GPU is at hand: what a rank
// needs per chunk by itself, with the published constants of NCCL (local.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace simulation {

enum class Collective { AllReduce, AllGather, ReduceScatter };

/// What a rank does by itself, for one algorithm and protocol.
struct Local {
    double base_us = 0;       ///< once: launch and first step
    double intra_hop_us = 0;  ///< one chunk from rank to rank inside a node, however small
    double inter_hop_us = 0;  ///< the same between nodes, the network's own latency not included
    double rank_gbs = 0;      ///< what a rank can process, over all channels
    double intra_gbs = 0;     ///< what the inside of a node carries from rank to rank
    double wire = 1;          ///< bytes on the wire for each byte of the message
    double chunk_bytes = 0;   ///< largest chunk, over all channels
    double least_chunk_bytes = 0;  ///< a tree cuts its chunks down to this to fill its depth
    /// LL and LL128: a rank passes on line by line inside a node what it receives; only the network
    /// takes a whole part at a time. Simple: every hop takes a whole part.
    bool streams = false;
    int slices = 1;  ///< parts of a chunk that follow each other
    int slots = 8;   ///< parts that a connection may have in flight
};

/// The nodes and what joins them. Latency in microseconds, bandwidth in GB/s of a whole node.
struct Network {
    int nodes = 2;
    int ranks_per_node = 1;
    double alpha_us = 1;
    double beta_gbs = 25;
    std::map<int, double> node_beta_gbs;  ///< nodes whose NICs are slower, in and out
    std::map<std::pair<int, int>, double> edge_alpha_us;  ///< directed edges of another latency

    [[nodiscard]] double alpha(int from, int to) const {
        const auto it = edge_alpha_us.find({from, to});
        return it == edge_alpha_us.end() ? alpha_us : it->second;
    }
    [[nodiscard]] double beta(int node) const {
        const auto it = node_beta_gbs.find(node);
        return it == node_beta_gbs.end() ? beta_gbs : it->second;
    }
    [[nodiscard]] bool uniform() const { return node_beta_gbs.empty() && edge_alpha_us.empty(); }
};

/// Time of one collective in microseconds. `bytes`: the whole message (for AllGather and
/// ReduceScatter all ranks' parts together).
[[nodiscard]] double ringTime(const Network& network, const Local& local, Collective what,
                              double bytes);
[[nodiscard]] double treeTime(const Network& network, const Local& local, double bytes);

/// Parents in tree 0 or 1 of the double binary tree; -1 for the root.
[[nodiscard]] std::vector<int> treeParents(int tree, int nodes);

}  // namespace simulation
