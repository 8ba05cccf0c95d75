#include "tuner/fabric/verbs_error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

#include "tuner/fabric/transport.hpp"
#include "tuner/fabric/verbs_device.hpp"

namespace rdmatune::fabric {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(VerbsError, GivesTheLockLimitWithItsValue) {
    EXPECT_THAT(remedyFor(ENOMEM, 65536), AllOf(HasSubstr("64 KiB"), HasSubstr("LimitMEMLOCK")));
    EXPECT_THAT(remedyFor(ENOMEM, std::nullopt), testing::Not(HasSubstr("ulimit")));
}

TEST(VerbsError, ReadsTheProcessesOwnLimit) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
    const rlimit low{.rlim_cur = 65536, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &low), 0);
    EXPECT_EQ(lockLimit(), 65536U);
    EXPECT_THAT(verbsError("mlx5_0 port 1", "registering memory", ENOMEM).message,
                AllOf(HasSubstr("mlx5_0 port 1: registering memory failed"), HasSubstr("errno 12"),
                      HasSubstr("64 KiB")));
    ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

TEST(VerbsError, KnowsARemedyForWhatUsersMeet) {
    EXPECT_THAT(remedyFor(EACCES, std::nullopt), HasSubstr("/dev/infiniband"));
    EXPECT_THAT(remedyFor(EINVAL, std::nullopt), HasSubstr("GID"));
    EXPECT_THAT(remedyFor(ENETUNREACH, std::nullopt), HasSubstr("route"));
    EXPECT_EQ(remedyFor(EDOM, std::nullopt), "");
}

TEST(VerbsError, NamesPeerAndStatusOfACompletion) {
    const Error error =
        completionError("mlx5_0 port 1", "10.9.0.2 QP 0x11", "a ping", IBV_WC_RETRY_EXC_ERR);
    EXPECT_THAT(error.message, AllOf(HasSubstr("mlx5_0 port 1 to 10.9.0.2 QP 0x11: a ping failed"),
                                     HasSubstr("status 12"), HasSubstr("4791")));
}

TEST(VerbsDevice, RatesAreThoseOfTheLinks) {
    constexpr int k4x = 2;
    EXPECT_DOUBLE_EQ(linkRateGbs(4, k4x), 5);      // QDR, 40 Gbit/s
    EXPECT_DOUBLE_EQ(linkRateGbs(32, k4x), 12.5);  // EDR, 100
    EXPECT_DOUBLE_EQ(linkRateGbs(64, k4x), 25);    // HDR, 200
    EXPECT_DOUBLE_EQ(linkRateGbs(128, k4x), 50);   // NDR, 400
    EXPECT_DOUBLE_EQ(linkRateGbs(64, 16), 12.5);   // HDR100: two lanes
    EXPECT_DOUBLE_EQ(linkRateGbs(3, k4x), 0);
    EXPECT_DOUBLE_EQ(linkRateGbs(32, 3), 0);
}

TEST(VerbsTransport, NamesTheMissingDevice) {
    VerbsRequest request;
    request.rails.push_back({.hca = "no_such_hca", .port = 1, .gpu = -1, .gpu_pci = {}});
    std::vector<std::string> skipped;
    const auto transport = makeVerbsTransport(request, skipped);
    ASSERT_FALSE(transport.ok());
    EXPECT_THAT(transport.error().message, HasSubstr("no_such_hca"));
    EXPECT_FALSE(makeVerbsTransport(VerbsRequest{}, skipped).ok());
}

}  // namespace
}  // namespace rdmatune::fabric
