#include "tuner/base/pci_address.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rdmatune {
namespace {

std::string normal(const char* text) {
    const auto address = PciAddress::parse(text);
    return address ? address->str() : "none";
}

TEST(PciAddress, ReadsEveryCommonForm) {
    EXPECT_EQ(normal("0000:03:00.0"), "0000:03:00.0");
    EXPECT_EQ(normal("03:00.0"), "0000:03:00.0");
    EXPECT_EQ(normal("00000000:C1:1F.7"), "0000:c1:1f.7");
    EXPECT_EQ(normal("10000:e1:00.0"), "10000:e1:00.0");
    EXPECT_EQ(normal("FFFF:FF:01.0"), "ffff:ff:01.0");
    EXPECT_EQ(normal("0:3:0.0"), "0000:03:00.0");
}

TEST(PciAddress, RefusesEverythingElse) {
    for (const char* text : {"",
                             "03",
                             "03:00",
                             "0000:03:00",
                             "0000:03:00.8",
                             "0000:03:20.0",
                             "0000:100:00.0",
                             "0000:03:00.0 ",
                             " 0000:03:00.0",
                             "0000:03:00.0.0",
                             "g000:03:00.0",
                             "0000::00.0",
                             "0000:03:.0",
                             "0000:03:00.",
                             ":03:00.0",
                             "0:0000:03:00.0",
                             "000000000:03:00.0",
                             "-1:03:00.0",
                             "0x0:03:00.0",
                             "0000:03:00.10"})
        EXPECT_EQ(PciAddress::parse(text), std::nullopt) << text;
}

TEST(PciAddress, OrderIsDomainBusDeviceFunction) {
    std::vector<std::string> sorted = {"0000:03:00.1", "0000:03:01.0", "0000:10:00.0",
                                       "0001:00:00.0", "10000:00:00.0"};
    for (std::size_t i = 1; i < sorted.size(); ++i)
        EXPECT_LT(*PciAddress::parse(sorted[i - 1]), *PciAddress::parse(sorted[i]));
}

}  // namespace
}  // namespace rdmatune
