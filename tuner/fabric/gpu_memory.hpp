// GPU memory for the network to read and write, through the CUDA driver where there is one. The
// driver is opened at run time; nothing of CUDA is linked or included.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tuner/base/result.hpp"
#include "tuner/fabric/verbs_handles.hpp"

namespace rdmatune::fabric {

/// The few functions of the CUDA driver interface that are needed, as libcuda.so.1 exports them
/// (names with _v2 are today's meaning of the names without). Types: CUresult and CUdevice are int,
/// CUcontext is a pointer, CUdeviceptr is a 64-bit number.
struct CudaDriver {
    int (*init)(unsigned flags) = nullptr;
    int (*deviceByPci)(int* device, const char* pci) = nullptr;
    int (*retainContext)(void** context, int device) = nullptr;
    int (*releaseContext)(int device) = nullptr;
    int (*pushContext)(void* context) = nullptr;
    int (*popContext)(void** context) = nullptr;
    int (*allocate)(std::uint64_t* address, std::size_t bytes) = nullptr;
    int (*free)(std::uint64_t address) = nullptr;
    int (*copyFromGpu)(void* target, std::uint64_t source, std::size_t bytes) = nullptr;
    int (*copyToGpu)(std::uint64_t target, const void* source, std::size_t bytes) = nullptr;
    int (*setPointerAttribute)(const void* value, int attribute, std::uint64_t address) = nullptr;
    /// Absent before CUDA 11.7.
    int (*handleForRange)(void* handle, std::uint64_t address, std::size_t bytes, int type,
                          unsigned long long flags) = nullptr;
    int (*errorName)(int error, const char** name) = nullptr;
};

/// Opens `library` (normally "libcuda.so.1") once for the life of the process and initialises it.
/// Fails where there is no driver, an old one, or one that finds no GPU.
[[nodiscard]] Result<CudaDriver> loadCudaDriver(const std::string& library = "libcuda.so.1");

/// A piece of one GPU's memory, in the GPU's primary context. Move-only.
class GpuBuffer {
  public:
    /// `pci` as the driver knows it ("0000:3b:00.0"). `bytes` is rounded up to 64 KiB, the unit in
    /// which the GPU's memory is pinned for others.
    [[nodiscard]] static Result<GpuBuffer> allocate(const CudaDriver& driver,
                                                    const std::string& pci, std::size_t bytes);

    [[nodiscard]] std::uint64_t address() const { return held_->address; }
    [[nodiscard]] std::size_t size() const { return held_->size; }
    [[nodiscard]] const std::string& pci() const { return held_->pci; }

    [[nodiscard]] Status write(std::size_t offset, const void* source, std::size_t bytes) const;
    [[nodiscard]] Status read(std::size_t offset, void* target, std::size_t bytes) const;
    /// A DMA-BUF descriptor of the whole buffer; the caller closes it.
    [[nodiscard]] Result<int> dmabuf() const;

  private:
    struct Held {
        CudaDriver driver;
        std::string pci;
        int device = -1;
        void* context = nullptr;
        std::uint64_t address = 0;
        std::size_t size = 0;
        Held() = default;
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;
        ~Held();
    };
    explicit GpuBuffer(std::unique_ptr<Held> held) : held_(std::move(held)) {}
    std::unique_ptr<Held> held_;
};

/// The two calls of verbs that register GPU memory, exchangeable for tests.
struct RegisterCalls {
    ibv_mr* (*dmabuf)(ibv_pd*, std::uint64_t offset, std::size_t length, std::uint64_t address,
                      int descriptor, int access) = nullptr;
    ibv_mr* (*plain)(ibv_pd*, void* address, std::size_t length, int access) = nullptr;
    /// Those of libibverbs.
    [[nodiscard]] static RegisterCalls verbs();
};

/// GPU memory that an HCA reaches, and by which way.
struct GpuRegistration {
    MemoryRegion region;
    bool by_dmabuf = false;  ///< else by a peer-memory module
    std::string reason;      ///< one sentence: the way, and why not a better one
};

/// Registers the buffer with an HCA: by DMA-BUF first, then as a plain address, which works when
/// nvidia_peermem (or nv_peer_mem) is loaded. Fails with why neither works.
[[nodiscard]] Result<GpuRegistration> registerGpuMemory(
    const GpuBuffer& buffer, ibv_pd* domain, const RegisterCalls& calls = RegisterCalls::verbs());

}  // namespace rdmatune::fabric
