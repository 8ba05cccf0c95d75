#include "tuner/fabric/gpu_memory.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tuner/fabric/verbs_error.hpp"

namespace rdmatune::fabric {
namespace {

// Numbers of the CUDA driver interface (CUDA Driver API reference, "Data types used by CUDA
// driver").
constexpr int kHandleTypeDmabuf = 1;     // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
constexpr int kAttributeSyncMemops = 6;  // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
constexpr std::size_t kPinUnit = 65536;

std::string describe(const CudaDriver& driver, int error) {
    const char* name = nullptr;
    if (driver.errorName != nullptr && driver.errorName(error, &name) == 0 && name != nullptr)
        return fmt::format("{} ({})", name, error);
    return fmt::format("CUDA error {}", error);
}

/// Makes a context current for the life of a scope.
class Current {
  public:
    Current(const CudaDriver& driver, void* context)
        : driver_(driver), result_(driver.pushContext(context)) {}
    ~Current() {
        void* popped = nullptr;
        if (result_ == 0) static_cast<void>(driver_.popContext(&popped));
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    [[nodiscard]] int result() const { return result_; }

  private:
    const CudaDriver& driver_;
    int result_;
};

/// The interface that is asked for: CUDA 11.7, the first with DMA-BUF.
constexpr int kCudaVersion = 11070;

/// Finds functions of the driver: by their exported name, or by the driver's own look-up, which
/// takes the name without its version and gives the newest variant up to kCudaVersion.
class Symbols {
  public:
    explicit Symbols(void* library)
        : library_(library), find_(reinterpret_cast<Find>(dlsym(library, "cuGetProcAddress"))) {}

    template <class Function>
    bool lookUp(const std::string& name, Function& out) const {
        void* found = dlsym(library_, name.c_str());
        const auto version = name.rfind("_v2");
        if (found == nullptr && find_ != nullptr)
            static_cast<void>(find_(name.substr(0, version).c_str(), &found, kCudaVersion, 0));
        out = reinterpret_cast<Function>(found);
        return found != nullptr;
    }

  private:
    using Find = int (*)(const char* name, void** function, int version, std::uint64_t flags);
    void* library_;
    Find find_;
};

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

}  // namespace

Result<CudaDriver> loadCudaDriver(const std::string& library) {
    // Never closed: the driver keeps threads and handlers that outlive a dlclose.
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return Error{fmt::format("no CUDA driver here: {}", dlerror())};
    const Symbols symbols(handle);
    CudaDriver out;
    const char* missing = nullptr;
    const auto need = [&](const char* name, auto& function) {
        if (!symbols.lookUp(name, function) && missing == nullptr) missing = name;
    };
    need("cuInit", out.init);
    need("cuDeviceGetByPCIBusId", out.deviceByPci);
    need("cuDevicePrimaryCtxRetain", out.retainContext);
    need("cuDevicePrimaryCtxRelease_v2", out.releaseContext);
    need("cuCtxPushCurrent_v2", out.pushContext);
    need("cuCtxPopCurrent_v2", out.popContext);
    need("cuMemAlloc_v2", out.allocate);
    need("cuMemFree_v2", out.free);
    need("cuMemcpyDtoH_v2", out.copyFromGpu);
    need("cuMemcpyHtoD_v2", out.copyToGpu);
    if (missing != nullptr)
        return Error{fmt::format("{} has no {}: the CUDA driver is too old", library, missing)};
    symbols.lookUp("cuPointerSetAttribute", out.setPointerAttribute);
    symbols.lookUp("cuMemGetHandleForAddressRange", out.handleForRange);
    symbols.lookUp("cuGetErrorName", out.errorName);
    if (const int rc = out.init(0); rc != 0)
        return Error{
            fmt::format("the CUDA driver cannot be used: cuInit gave {}", describe(out, rc))};
    return out;
}

GpuBuffer::Held::~Held() {
    if (address != 0) {
        const Current current(driver, context);
        static_cast<void>(driver.free(address));
    }
    if (context != nullptr) static_cast<void>(driver.releaseContext(device));
}

Result<GpuBuffer> GpuBuffer::allocate(const CudaDriver& driver, const std::string& pci,
                                      std::size_t bytes) {
    const auto failed = [&](const char* call, int rc) {
        return Error{fmt::format("GPU {}: {} gave {}", pci, call, describe(driver, rc))};
    };
    auto held = std::make_unique<Held>();
    held->driver = driver;
    held->pci = pci;
    if (const int rc = driver.deviceByPci(&held->device, pci.c_str()); rc != 0)
        return failed("cuDeviceGetByPCIBusId (is it among CUDA_VISIBLE_DEVICES?)", rc);
    if (const int rc = driver.retainContext(&held->context, held->device); rc != 0) {
        held->context = nullptr;
        return failed("cuDevicePrimaryCtxRetain", rc);
    }
    const Current current(held->driver, held->context);
    if (current.result() != 0) return failed("cuCtxPushCurrent", current.result());
    const std::size_t size = (bytes + kPinUnit - 1) / kPinUnit * kPinUnit;
    if (const int rc = driver.allocate(&held->address, size); rc != 0) {
        held->address = 0;
        return failed("cuMemAlloc", rc);
    }
    held->size = size;
    // Copies by the driver then wait for each other, which the network's writes need
    // (GPUDirect RDMA guide, "Synchronization and memory ordering").
    const unsigned on = 1;
    if (driver.setPointerAttribute != nullptr)
        static_cast<void>(driver.setPointerAttribute(&on, kAttributeSyncMemops, held->address));
    return GpuBuffer(std::move(held));
}

Status GpuBuffer::write(std::size_t offset, const void* source, std::size_t bytes) const {
    const Current current(held_->driver, held_->context);
    const int rc = held_->driver.copyToGpu(held_->address + offset, source, bytes);
    if (rc == 0) return Done{};
    return Error{fmt::format("GPU {}: cuMemcpyHtoD gave {}", pci(), describe(held_->driver, rc))};
}

Status GpuBuffer::read(std::size_t offset, void* target, std::size_t bytes) const {
    const Current current(held_->driver, held_->context);
    const int rc = held_->driver.copyFromGpu(target, held_->address + offset, bytes);
    if (rc == 0) return Done{};
    return Error{fmt::format("GPU {}: cuMemcpyDtoH gave {}", pci(), describe(held_->driver, rc))};
}

Result<int> GpuBuffer::dmabuf() const {
    if (held_->driver.handleForRange == nullptr)
        return Error{"the CUDA driver is older than 11.7 and exports no DMA-BUF"};
    const Current current(held_->driver, held_->context);
    int descriptor = -1;
    const int rc = held_->driver.handleForRange(&descriptor, held_->address, held_->size,
                                                kHandleTypeDmabuf, 0);
    if (rc == 0 && descriptor >= 0) return descriptor;
    return Error{fmt::format("the CUDA driver exports no DMA-BUF of this GPU's memory: {}",
                             describe(held_->driver, rc))};
}

RegisterCalls RegisterCalls::verbs() {
    return {.dmabuf = &ibv_reg_dmabuf_mr,
            .plain = [](ibv_pd* domain, void* address, std::size_t length, int access) {
                return ibv_reg_mr(domain, address, length, access);
            }};
}

Result<GpuRegistration> registerGpuMemory(const GpuBuffer& buffer, ibv_pd* domain,
                                          const RegisterCalls& calls) {
    GpuRegistration out;
    std::string no_dmabuf;
    if (Result<int> descriptor = buffer.dmabuf(); descriptor) {
        errno = 0;
        out.region.reset(
            calls.dmabuf(domain, 0, buffer.size(), buffer.address(), *descriptor, kAccess));
        const int failure = errno;
        ::close(*descriptor);  // the registration holds the memory by itself
        if (out.region) {
            out.by_dmabuf = true;
            out.reason = "GPU memory was registered by DMA-BUF";
            return out;
        }
        no_dmabuf = fmt::format("the HCA's driver refuses it ({})", std::strerror(failure));
    } else {
        no_dmabuf = descriptor.error().message;
    }
    errno = 0;
    out.region.reset(
        calls.plain(domain, reinterpret_cast<void*>(buffer.address()), buffer.size(), kAccess));
    if (out.region) {
        out.reason =
            fmt::format("GPU memory was registered by peermem, since by DMA-BUF: {}", no_dmabuf);
        return out;
    }
    return Error{fmt::format(
        "GPU {}: its memory cannot be registered with the HCA: by DMA-BUF: {}; by peermem: {} (is "
        "nvidia_peermem loaded?)",
        buffer.pci(), no_dmabuf, std::strerror(errno))};
}

}  // namespace rdmatune::fabric
