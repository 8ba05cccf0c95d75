// The words of the model. Numbers are those of NCCL's interface, so that tuner/nccl need not
// translate.
#pragma once

#include <cstdint>

namespace rdmatune::model {

enum class Collective : std::uint8_t {
    Broadcast = 0,
    Reduce = 1,
    AllGather = 2,
    ReduceScatter = 3,
    AllReduce = 4
};
inline constexpr int kCollectives = 5;

enum class Algorithm : std::uint8_t {
    Tree = 0,
    Ring = 1,
    CollNetDirect = 2,
    CollNetChain = 3,
    Nvls = 4,
    NvlsTree = 5,
    Pat = 6
};
inline constexpr int kAlgorithms = 7;

enum class Protocol : std::uint8_t { LL = 0, LL128 = 1, Simple = 2 };
inline constexpr int kProtocols = 3;

inline constexpr const char* kCollectiveNames[kCollectives] = {"broadcast", "reduce", "allgather",
                                                               "reducescatter", "allreduce"};
inline constexpr const char* kAlgorithmNames[kAlgorithms] = {
    "tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"};
inline constexpr const char* kProtocolNames[kProtocols] = {"ll", "ll128", "simple"};

/// How large a communicator is.
struct CommSize {
    std::uint32_t ranks = 0;
    std::uint32_t nodes = 0;
};

}  // namespace rdmatune::model
