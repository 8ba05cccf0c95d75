// One communicator's state, and the two things that happen to it. What the exports of every
// interface version share.
#pragma once

#include "tuner/model/pricing.hpp"
#include "tuner/nccl/abi.hpp"

namespace rdmatune::nccl {

/// What NCCL keeps for us between init and destroy. Written by init only; getCollInfo reads it,
/// from whatever thread. Absent (null) where there is nothing to do.
struct Communicator {
    model::Pricing pricing;
    bool user_chose =
        false;  ///< NCCL_ALGO or NCCL_PROTO is set; only the v2 interface cannot see it otherwise
};

/// Reads the profile from RDMA_TUNE_PROFILE and prepares the communicator. Returns null, having
/// said why once in the process, where NCCL is to be left alone. `domains` and `constants` (v5 and
/// later) may be null; ring's and tree's latency to the network are written there.
[[nodiscard]] Communicator* open(std::size_t ranks, std::size_t nodes, Logger logger,
                                 const NvlDomainInfo* domains, Constants* constants);

/// Ends what open() began; null is fine.
void close(Communicator* communicator);

/// v3 and later: re-prices the table.
void priceTable(const Communicator* communicator, int function, std::size_t bytes,
                int pipe_operations, float** table, int algorithms, int protocols);

/// v2: there is no table; fills in algorithm and protocol where the measured network changes the
/// choice. `collnet` and `nvls` tell whether those could be chosen: their price is not known, so
/// that is left to NCCL.
void choose(const Communicator* communicator, int function, std::size_t bytes, int collnet,
            int nvls, int* algorithm, int* protocol);

}  // namespace rdmatune::nccl
