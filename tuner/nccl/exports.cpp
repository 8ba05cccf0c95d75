// The five symbols that NCCL looks for. Nothing is decided here.
#include "tuner/nccl/abi.hpp"
#include "tuner/nccl/communicator.hpp"

namespace {

using namespace rdmatune::nccl;

constexpr char kName[] = "rdma-tune";

int initOld(std::size_t ranks, std::size_t nodes, Logger logger, void** context) {
    if (context != nullptr) *context = open(ranks, nodes, logger, nullptr, nullptr);
    return kSuccess;
}

int initNew(void** context, std::uint64_t, std::size_t ranks, std::size_t nodes, Logger logger,
            NvlDomainInfo* domains, Constants* constants) {
    if (context != nullptr) *context = open(ranks, nodes, logger, domains, constants);
    return kSuccess;
}

int end(void* context) {
    close(static_cast<Communicator*>(context));
    return kSuccess;
}

int infoV2(void* context, int function, std::size_t bytes, int collnet, int nvls, int,
           int* algorithm, int* protocol, int*) {
    choose(static_cast<Communicator*>(context), function, bytes, collnet, nvls, algorithm,
           protocol);
    return kSuccess;
}

int infoV3(void* context, int function, std::size_t bytes, int pipe_operations, float** table,
           int algorithms, int protocols, int*) {
    priceTable(static_cast<Communicator*>(context), function, bytes, pipe_operations, table,
               algorithms, protocols);
    return kSuccess;
}

int infoV4(void* context, int function, std::size_t bytes, int pipe_operations, float** table,
           int algorithms, int protocols, int, int*) {
    priceTable(static_cast<Communicator*>(context), function, bytes, pipe_operations, table,
               algorithms, protocols);
    return kSuccess;
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) extern const TunerV2 ncclTunerPlugin_v2 = {kName, initOld,
                                                                                  infoV2, end};
__attribute__((visibility("default"))) extern const TunerV3 ncclTunerPlugin_v3 = {kName, initOld,
                                                                                  infoV3, end};
__attribute__((visibility("default"))) extern const TunerV4 ncclTunerPlugin_v4 = {kName, initOld,
                                                                                  infoV4, end};
__attribute__((visibility("default"))) extern const TunerV5 ncclTunerPlugin_v5 = {kName, initNew,
                                                                                  infoV4, end};
__attribute__((visibility("default"))) extern const TunerV6 ncclTunerPlugin_v6 = {
    kName, initNew, infoV4, end, nullptr};
}
