#include "tuner/base/cpu_set.hpp"

#include <gtest/gtest.h>

namespace rdmatune {
namespace {

CpuSet cpus(const char* text) {
    return CpuSet::parse(text).value();
}

TEST(CpuSet, TextFormGoesBothWays) {
    for (const char* text : {"", "0", "0-11", "0-11,24,26", "3,5,7-9", "65535"})
        EXPECT_EQ(cpus(text).str(), text);
}

TEST(CpuSet, ParseSortsAndMerges) {
    EXPECT_EQ(cpus("7,1-3,2-4").str(), "1-4,7");
    EXPECT_EQ(cpus(" 0-1\n").str(), "0-1");
    EXPECT_EQ(cpus("0,1").str(), "0-1");
    EXPECT_EQ(cpus("5-5").str(), "5");
}

TEST(CpuSet, ParseRefuses) {
    for (const char* text : {"a", "1-", "-1", "3-1", "1,,2", "1-2-3", "0-65536", "1;2", "1 2",
                             "99999999999", ",", "0x3"})
        EXPECT_EQ(CpuSet::parse(text), std::nullopt) << text;
}

TEST(CpuSet, ParseMask) {
    EXPECT_EQ(CpuSet::parseMask("00ffffff")->str(), "0-23");
    EXPECT_EQ(CpuSet::parseMask("000000ff,ffff0000,00ffffff")->str(), "0-23,48-71");
    EXPECT_EQ(CpuSet::parseMask("0x3,0x00000001")->str(), "0,32-33");
    EXPECT_EQ(CpuSet::parseMask("0xff,,0x0")->str(), "64-71");
    EXPECT_EQ(CpuSet::parseMask("0003ff,f0003fff")->str(), "0-13,28-41");
    EXPECT_EQ(CpuSet::parseMask("0")->str(), "");
    EXPECT_EQ(CpuSet::parseMask("80000000\n")->str(), "31");
}

TEST(CpuSet, ParseMaskRefuses) {
    for (const char* text : {"", "xyz", "123456789", "0xf...f", "ff ff", "0x", "-1"})
        EXPECT_EQ(CpuSet::parseMask(text), std::nullopt) << text;
}

TEST(CpuSet, SetOperations) {
    EXPECT_EQ((cpus("0-5") & cpus("4-9")).str(), "4-5");
    EXPECT_EQ((cpus("0-5") | cpus("4-9")).str(), "0-9");
    EXPECT_EQ((cpus("0-5") - cpus("2-3")).str(), "0-1,4-5");
    EXPECT_TRUE((cpus("0-1") & cpus("2-3")).empty());
    EXPECT_EQ(cpus("0-3").size(), 4U);
    EXPECT_TRUE(cpus("0-3").contains(3));
    EXPECT_FALSE(cpus("0-3").contains(4));
    EXPECT_EQ(cpus("1,3").list(), (std::vector<int>{1, 3}));
    CpuSet grown;
    grown.add(2);
    grown.addRange(4, 6);
    EXPECT_EQ(grown, cpus("2,4-6"));
}

}  // namespace
}  // namespace rdmatune
