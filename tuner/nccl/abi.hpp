// The tuner plugin interface of NCCL, versions 2 to 6, as far as this plugin takes part in it.
// Declared anew from the documented layout; the assertions hold it to what NCCL 2.21 to 2.30 were
// seen to use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdmatune::nccl {

/// ncclResult_t. The only value this plugin returns: NCCL ends the job on any other.
inline constexpr int kSuccess = 0;

/// ncclDebugLogLevel and the bit of ncclDebugLogSubSys under which tuners speak.
inline constexpr int kLogInfo = 3;
inline constexpr unsigned long kLogTuning = 0x40;

extern "C" {

using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);

struct NvlDomainInfo {
    int domains;
    int min_ranks_per_domain;
    int max_ranks_per_domain;
};

/// The beginning of ncclTunerConstants: newer NCCLs append to it, so it is never copied whole.
struct Constants {
    double base_latencies[7][3];   ///< [algorithm][protocol], us
    double hw_latencies[3][7][3];  ///< [NVLink, PCI, network][algorithm][protocol], us
    double ll_max_bandwidths[4][3];
    double ring_ll128_bandwidths[4][3];
    double tree_ll128_bandwidths[4][3];
    double tree_bandwidths[4][3];
    double nvls_tree_bandwidths[4][3];
};

struct TunerV2 {
    const char* name;
    int (*init)(std::size_t ranks, std::size_t nodes, Logger logger, void** context);
    int (*getCollInfo)(void* context, int function, std::size_t bytes, int collnet, int nvls,
                       int pipe_operations, int* algorithm, int* protocol, int* channels);
    int (*destroy)(void* context);
};

struct TunerV3 {
    const char* name;
    int (*init)(std::size_t ranks, std::size_t nodes, Logger logger, void** context);
    int (*getCollInfo)(void* context, int function, std::size_t bytes, int pipe_operations,
                       float** table, int algorithms, int protocols, int* channels);
    int (*destroy)(void* context);
};

struct TunerV4 {
    const char* name;
    int (*init)(std::size_t ranks, std::size_t nodes, Logger logger, void** context);
    int (*getCollInfo)(void* context, int function, std::size_t bytes, int pipe_operations,
                       float** table, int algorithms, int protocols, int registered, int* channels);
    int (*destroy)(void* context);
};

struct TunerV5 {
    const char* name;
    int (*init)(void** context, std::uint64_t communicator, std::size_t ranks, std::size_t nodes,
                Logger logger, NvlDomainInfo* domains, Constants* constants);
    int (*getCollInfo)(void* context, int function, std::size_t bytes, int pipe_operations,
                       float** table, int algorithms, int protocols, int registered, int* channels);
    int (*finalize)(void* context);
};

struct TunerV6 {
    const char* name;
    int (*init)(void** context, std::uint64_t communicator, std::size_t ranks, std::size_t nodes,
                Logger logger, NvlDomainInfo* domains, Constants* constants);
    int (*getCollInfo)(void* context, int function, std::size_t bytes, int pipe_operations,
                       float** table, int algorithms, int protocols, int registered, int* channels);
    int (*finalize)(void* context);
    /// May be null: chunk sizes stay NCCL's.
    int (*getChunkSize)(void* context, int function, std::size_t bytes, int algorithm, int protocol,
                        int channels, std::size_t* chunk_size);
};

}  // extern "C"

static_assert(sizeof(void*) == 8 && sizeof(std::size_t) == 8,
              "NCCL exists for 64-bit machines only");
static_assert(offsetof(TunerV2, init) == 8 && offsetof(TunerV2, getCollInfo) == 16 &&
              offsetof(TunerV2, destroy) == 24);
static_assert(offsetof(TunerV3, getCollInfo) == 16 && offsetof(TunerV3, destroy) == 24);
static_assert(offsetof(TunerV4, getCollInfo) == 16 && offsetof(TunerV4, destroy) == 24);
static_assert(offsetof(TunerV5, getCollInfo) == 16 && offsetof(TunerV5, finalize) == 24 &&
              sizeof(TunerV5) == 32);
static_assert(offsetof(TunerV6, getCollInfo) == 16 && offsetof(TunerV6, finalize) == 24);
static_assert(offsetof(TunerV6, getChunkSize) == 32 && sizeof(TunerV6) == 40);
static_assert(sizeof(NvlDomainInfo) == 12);
static_assert(offsetof(Constants, hw_latencies) == 21 * 8 &&
              offsetof(Constants, ll_max_bandwidths) == 84 * 8);
static_assert(sizeof(Constants) == 144 * 8);

}  // namespace rdmatune::nccl
