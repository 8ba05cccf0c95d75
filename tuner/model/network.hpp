// How long ring and tree take on a given network: the closed form. docs/tuner.md derives it;
// tests/model holds it against a simulator that shares no code with it. Whole numbers only; runs
// inside NCCL.
#pragma once

#include "tuner/model/constants.hpp"
#include "tuner/model/types.hpp"
#include "tuner/model/units.hpp"

namespace rdmatune::model {

/// The network between the nodes, for one pattern.
struct Network {
    Ticks alpha =
        ticksFromNs(kReferenceAlphaNs);  ///< one-way latency of a small message, an ordinary edge
    Ticks worst_extra = 0;               ///< how much more the worst edge takes
    Rate rate =
        0;  ///< time per byte that leaves a node, by all rails in use; 0: not known, left out
    bool operator==(const Network&) const = default;
};

/// One collective with one algorithm (tree or ring) and protocol.
struct Operation {
    Algorithm algorithm = Algorithm::Ring;
    Protocol protocol = Protocol::Simple;
    Collective what = Collective::AllReduce;
    CommSize size;
    std::uint32_t rails = 1;  ///< in use; NCCL has a channel or more for each
    std::uint64_t bytes = 0;  ///< the whole message
};

/// The closed form, what the network is known for: time = base + fixed + max(kernels * bound,
/// floor), where bound is the time that everything but the network needs to move the message.
struct Terms {
    Ticks fixed = 0;  ///< passes that nothing hides: a tree's way up and down, a last hop
    Ticks floor = 0;  ///< what the network allows at best: its bytes, its latencies, its slots
    std::uint64_t kernels = 0;  ///< how much of bound is not hidden in `fixed`, in 2^-16
};
[[nodiscard]] Terms termsOn(const Network& network, const LatencyTable& table,
                            const Operation& operation);

/// Bytes that leave a node, the protocol's flags included.
[[nodiscard]] std::uint64_t leavingBytes(const Operation& operation);

/// Time of the operation, where everything but the network needs `bound` to move the message.
/// `table` has NCCL's latencies; those between nodes include kReferenceAlphaNs, which gives way to
/// the network's own.
[[nodiscard]] Ticks timeOn(const Network& network, const LatencyTable& table,
                           const Operation& operation, Ticks bound);

}  // namespace rdmatune::model
