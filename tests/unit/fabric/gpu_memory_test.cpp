#include "tuner/fabric/gpu_memory.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace rdmatune::fabric {
namespace {

using testing::HasSubstr;

/// What the fake driver and the fake verbs were asked for, and how they answer.
struct Fake {
    int pushed = 0;
    int retained = 0;
    std::size_t allocated = 0;
    bool dmabuf_exported = true;
    bool dmabuf_registers = true;
    bool plain_registers = true;
    int last_descriptor = -1;
    std::vector<unsigned char> memory;
};
Fake fake;
ibv_mr region_of_fake;

constexpr int kInvalidDevice = 101;  // CUDA_ERROR_INVALID_DEVICE
constexpr int kNotSupported = 801;   // CUDA_ERROR_NOT_SUPPORTED

CudaDriver fakeDriver() {
    CudaDriver out;
    out.init = [](unsigned) { return 0; };
    out.deviceByPci = [](int* device, const char* pci) {
        *device = 3;
        return std::strcmp(pci, "0000:3b:00.0") == 0 ? 0 : kInvalidDevice;
    };
    out.retainContext = [](void** context, int) {
        *context = &fake;
        ++fake.retained;
        return 0;
    };
    out.releaseContext = [](int) {
        --fake.retained;
        return 0;
    };
    out.pushContext = [](void*) {
        ++fake.pushed;
        return 0;
    };
    out.popContext = [](void** context) {
        *context = &fake;
        --fake.pushed;
        return 0;
    };
    out.allocate = [](std::uint64_t* address, std::size_t bytes) {
        if (fake.pushed == 0) return 201;  // CUDA_ERROR_INVALID_CONTEXT
        fake.memory.resize(bytes);
        fake.allocated = bytes;
        *address = reinterpret_cast<std::uint64_t>(fake.memory.data());
        return 0;
    };
    out.free = [](std::uint64_t) {
        fake.allocated = 0;
        return 0;
    };
    out.copyFromGpu = [](void* target, std::uint64_t source, std::size_t bytes) {
        std::memcpy(target, reinterpret_cast<const void*>(source), bytes);
        return 0;
    };
    out.copyToGpu = [](std::uint64_t target, const void* source, std::size_t bytes) {
        std::memcpy(reinterpret_cast<void*>(target), source, bytes);
        return 0;
    };
    out.handleForRange = [](void* handle, std::uint64_t, std::size_t, int type,
                            unsigned long long) {
        if (!fake.dmabuf_exported || type != 1) return kNotSupported;
        fake.last_descriptor = dup(0);
        std::memcpy(handle, &fake.last_descriptor, sizeof fake.last_descriptor);
        return 0;
    };
    return out;
}

RegisterCalls fakeRegistration() {
    return {.dmabuf = [](ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int descriptor,
                         int) -> ibv_mr* {
                EXPECT_EQ(descriptor, fake.last_descriptor);
                errno = EOPNOTSUPP;
                return fake.dmabuf_registers ? &region_of_fake : nullptr;
            },
            .plain = [](ibv_pd*, void* address, std::size_t, int) -> ibv_mr* {
                EXPECT_EQ(address, fake.memory.data());
                errno = EFAULT;
                return fake.plain_registers ? &region_of_fake : nullptr;
            }};
}

class GpuMemory : public testing::Test {
  protected:
    void SetUp() override { fake = Fake{}; }
    static GpuBuffer buffer() {
        auto made = GpuBuffer::allocate(fakeDriver(), "0000:3b:00.0", 100000);
        EXPECT_TRUE(made.ok());
        return std::move(made.value());
    }
};

TEST_F(GpuMemory, AllocatesInWholePinningUnitsAndGivesEverythingBack) {
    {
        const GpuBuffer memory = buffer();
        EXPECT_EQ(memory.size(), 131072U);
        EXPECT_EQ(fake.allocated, 131072U);
        EXPECT_EQ(fake.retained, 1);
    }
    EXPECT_EQ(fake.allocated, 0U);
    EXPECT_EQ(fake.retained, 0);
    EXPECT_EQ(fake.pushed, 0);
}

TEST_F(GpuMemory, MovesWithoutFreeingTwice) {
    GpuBuffer memory = buffer();
    {
        const GpuBuffer moved = std::move(memory);
        EXPECT_EQ(fake.retained, 1);
    }
    EXPECT_EQ(fake.retained, 0);
}

TEST_F(GpuMemory, CopiesBothWays) {
    const GpuBuffer memory = buffer();
    const std::uint64_t sent = 0x1122334455667788;
    std::uint64_t back = 0;
    ASSERT_TRUE(memory.write(64, &sent, sizeof sent).ok());
    ASSERT_TRUE(memory.read(64, &back, sizeof back).ok());
    EXPECT_EQ(back, sent);
}

TEST_F(GpuMemory, NamesTheGpuThatIsNotThere) {
    const auto made = GpuBuffer::allocate(fakeDriver(), "0000:ff:00.0", 4096);
    ASSERT_FALSE(made.ok());
    EXPECT_THAT(made.error().message, HasSubstr("0000:ff:00.0"));
    EXPECT_THAT(made.error().message, HasSubstr("101"));
    EXPECT_EQ(fake.retained, 0);
}

TEST_F(GpuMemory, RegistersByDmabufFirst) {
    const GpuBuffer memory = buffer();
    auto registered = registerGpuMemory(memory, nullptr, fakeRegistration());
    ASSERT_TRUE(registered.ok());
    EXPECT_TRUE(registered->by_dmabuf);
    EXPECT_EQ(fcntl(fake.last_descriptor, F_GETFD), -1) << "the descriptor must be closed";
    static_cast<void>(registered->region.release());  // the region is not verbs' own
}

TEST_F(GpuMemory, FallsBackToPeermemAndSaysWhy) {
    fake.dmabuf_registers = false;
    const GpuBuffer memory = buffer();
    auto registered = registerGpuMemory(memory, nullptr, fakeRegistration());
    ASSERT_TRUE(registered.ok());
    EXPECT_FALSE(registered->by_dmabuf);
    EXPECT_THAT(registered->reason, HasSubstr("peermem"));
    EXPECT_THAT(registered->reason, HasSubstr(std::strerror(EOPNOTSUPP)));
    static_cast<void>(registered->region.release());
}

TEST_F(GpuMemory, SaysWhyNeitherWayWorks) {
    fake.dmabuf_exported = false;
    fake.plain_registers = false;
    const GpuBuffer memory = buffer();
    const auto registered = registerGpuMemory(memory, nullptr, fakeRegistration());
    ASSERT_FALSE(registered.ok());
    EXPECT_THAT(registered.error().message, HasSubstr("0000:3b:00.0"));
    EXPECT_THAT(registered.error().message, HasSubstr("801"));
    EXPECT_THAT(registered.error().message, HasSubstr("nvidia_peermem"));
}

TEST_F(GpuMemory, SaysThatThereIsNoDriver) {
    const auto driver = loadCudaDriver("libcuda-that-is-nowhere.so.1");
    ASSERT_FALSE(driver.ok());
    EXPECT_THAT(driver.error().message, HasSubstr("no CUDA driver here"));
}

TEST_F(GpuMemory, RefusesALibraryThatIsNoCudaDriver) {
    const auto driver = loadCudaDriver("libdl.so.2");
    ASSERT_FALSE(driver.ok());
    EXPECT_THAT(driver.error().message, HasSubstr("cuInit"));
}

/// The stand-in driver that answers without a GPU, where tests/tools/nccl_dryrun.sh finds it:
/// NCCL_DRYRUN names the program next to its build folder.
TEST_F(GpuMemory, WorksOnAStandInDriver) {
    const char* program = std::getenv("NCCL_DRYRUN");
    const char* why = std::getenv("NCCL_DRYRUN_WHY");
    if (program == nullptr) GTEST_SKIP() << (why != nullptr ? why : "NCCL_DRYRUN is not set");
    const std::filesystem::path folder = std::filesystem::path(program).parent_path();
    const auto library = folder / "build/lib/libcuda.so.1";
    if (!exists(library)) GTEST_SKIP() << library << " is not there";
    setenv("DRYRUN_SHAPE", (folder / "shapes/dgx-h100.ini").c_str(), 1);
    const auto driver = loadCudaDriver(library);
    ASSERT_TRUE(driver.ok()) << driver.error().message;
    const char* pci = std::getenv("RDMA_TUNE_TEST_GPU");
    const auto memory =
        GpuBuffer::allocate(*driver, pci != nullptr ? pci : "0000:1b:00.0", 4 << 20);
    ASSERT_TRUE(memory.ok()) << memory.error().message;
    const std::uint64_t sent = 42;
    std::uint64_t back = 0;
    ASSERT_TRUE(memory->write(0, &sent, sizeof sent).ok());
    ASSERT_TRUE(memory->read(0, &back, sizeof back).ok());
    EXPECT_EQ(back, sent);
    const auto descriptor = memory->dmabuf();
    if (descriptor)
        close(*descriptor);
    else
        EXPECT_THAT(descriptor.error().message, HasSubstr("DMA-BUF"));
}

}  // namespace
}  // namespace rdmatune::fabric
