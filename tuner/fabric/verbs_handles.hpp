// Move-only owners of what libibverbs hands out; each frees itself in the right way.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace rdmatune::fabric {

/// Deleter that calls a C function of the library. A failure while freeing has no remedy here: the
/// kernel frees everything when the process ends.
template <auto Free>
struct Freed {
    template <class T>
    void operator()(T* handle) const {
        static_cast<void>(Free(handle));
    }
};

// A plain function: ibv_reg_mr and kin are macros in verbs.h, their counterparts are functions.
using DeviceContext = std::unique_ptr<ibv_context, Freed<&ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Freed<&ibv_dealloc_pd>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Freed<&ibv_destroy_cq>>;
using QueuePair = std::unique_ptr<ibv_qp, Freed<&ibv_destroy_qp>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Freed<&ibv_dereg_mr>>;

/// Zeroed memory at a page's start, which registers without sharing a page with anything else.
class HostBuffer {
  public:
    HostBuffer() = default;
    /// Whole pages of 4096 bytes, at least `bytes`; holds nothing when memory is short.
    explicit HostBuffer(std::size_t bytes);

    [[nodiscard]] std::byte* data() const { return memory_.get(); }
    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    struct Release {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    std::unique_ptr<std::byte, Release> memory_;
    std::size_t size_ = 0;
};

}  // namespace rdmatune::fabric
