// The profile's text: what is written is read back, and every surprise is an error.
#include "tuner/profile/profile.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "tuner/profile/crc32.hpp"

namespace rdmatune {
namespace {

FabricProfile sample() {
    FabricProfile p;
    p.nodes = 4;
    p.nodes_measured = 4;
    p.transport = ProfileTransport::InfiniBand;
    p.gdr = ProfileGdr::Dmabuf;
    p.rails = 8;
    p.rail_mbps = 24300;
    p.rail_nominal_mbps = 25000;
    p.ring = {1900, 2300, 190000, 181000};
    p.tree = {2000, 2600, 170000, 160000};
    p.complete = true;
    std::strcpy(p.slow_node, "gpu-07.rack_2");
    std::strcpy(p.rules, "ar:0-65536:2-4:tree:ll/*:0-*:2-*:keep:*");
    return p;
}

std::string text(const FabricProfile& p) {
    char out[kProfileTextMax];
    const std::size_t length = formatProfile(p, out, sizeof out);
    EXPECT_EQ(length, std::strlen(out));
    return out;
}

/// `body` with a right checksum, so that the fields themselves are judged.
std::string sealed(const std::string& body) {
    char crc[16];
    std::snprintf(crc, sizeof crc, ";crc=%08x", crc32(body.data(), body.size()));
    return body + crc;
}

ProfileError errorOf(const std::string& s) {
    FabricProfile p;
    return parseProfile(s.c_str(), p);
}

TEST(Crc32, CheckValue) {
    EXPECT_EQ(crc32("123456789", 9), 0xcbf43926U);
}

TEST(Profile, IsOneReadableLine) {
    const std::string line = text(sample());
    EXPECT_EQ(line.substr(0, line.rfind(";crc=")),
              "rt1;nodes=4;measured=4;net=ib;gdr=dmabuf;rails=8;rail=24300;nominal=25000;ra=1900;"
              "raw=2300;"
              "rb=190000;rbw=181000;ta=2000;taw=2600;tb=170000;tbw=160000;complete=1;neutral=0;"
              "slow=gpu-07.rack_2;rules=ar:0-65536:2-4:tree:ll/*:0-*:2-*:keep:*");
    EXPECT_EQ(line.find_first_of(" ,\"'\n\t"), std::string::npos);
}

TEST(Profile, RoundTrip) {
    FabricProfile back;
    ASSERT_EQ(parseProfile(text(sample()).c_str(), back), ProfileError::None);
    EXPECT_EQ(back, sample());
}

TEST(Profile, RoundTripOfRandomProfiles) {
    std::mt19937 random(7);
    const auto figure = [&] { return static_cast<std::uint32_t>(random() % 1000000000U); };
    for (int i = 0; i < 2000; ++i) {
        FabricProfile p = sample();
        p.nodes = static_cast<std::uint32_t>(1 + random() % 1000000);
        p.nodes_measured = static_cast<std::uint32_t>(random() % (p.nodes + 1));
        p.transport = static_cast<ProfileTransport>(random() % 3);
        p.gdr = static_cast<ProfileGdr>(random() % 4);
        p.rails = static_cast<std::uint32_t>(random() % (kProfileMaxRails + 1));
        for (PatternFigures* f : {&p.ring, &p.tree}) *f = {figure(), figure(), figure(), figure()};
        p.rail_mbps = random() % 1000000;
        p.rail_nominal_mbps = random() % 1000000;
        p.complete = random() % 2 != 0;
        p.neutral = random() % 2 != 0;
        FabricProfile back;
        ASSERT_EQ(parseProfile(text(p).c_str(), back), ProfileError::None);
        ASSERT_EQ(back, p);
    }
}

TEST(Profile, LargestFitsTwoKilobytes) {
    FabricProfile p = sample();
    p.nodes = p.nodes_measured = 1000000;
    p.rail_mbps = p.rail_nominal_mbps = 1000000000;
    p.ring = p.tree = {1000000000, 1000000000, 1000000000, 1000000000};
    std::memset(p.slow_node, 'x', sizeof p.slow_node - 1);
    std::memset(p.rules, '1', sizeof p.rules - 1);
    const std::string line = text(p);
    EXPECT_LT(line.size(), kProfileTextMax);
    FabricProfile back;
    ASSERT_EQ(parseProfile(line.c_str(), back), ProfileError::None);
    EXPECT_EQ(back, p);
}

TEST(Profile, EveryChangedByteIsSeen) {
    const std::string line = text(sample());
    for (std::size_t i = 0; i < line.size(); ++i)
        for (const char c : {'0', '1', ';', 'x', '\x01', '\xff'}) {
            if (line[i] == c) continue;
            std::string bad = line;
            bad[i] = c;
            EXPECT_NE(errorOf(bad), ProfileError::None) << bad;
        }
}

TEST(Profile, EveryCutIsSeen) {
    const std::string line = text(sample());
    for (std::size_t i = 0; i < line.size(); ++i) {
        EXPECT_NE(errorOf(line.substr(0, i)), ProfileError::None) << i;
        EXPECT_NE(errorOf(line.substr(0, i) + line.substr(i + 1)), ProfileError::None) << i;
    }
    for (const char c : {' ', '\r', '0', ';'}) EXPECT_NE(errorOf(line + c), ProfileError::None);
}

TEST(Profile, OfSeveralLinesTheFirstIsRead) {
    const std::string line = text(sample());
    FabricProfile back;
    ASSERT_EQ(parseProfile((line + "\nrt-agreed/1 rails=0\n").c_str(), back), ProfileError::None);
    EXPECT_EQ(text(back), line);
    EXPECT_NE(errorOf("\n" + line), ProfileError::None);
    EXPECT_NE(errorOf(line.substr(0, 40) + "\n" + line.substr(40)), ProfileError::None);
}

TEST(Profile, FailureLeavesTheOutputAlone) {
    FabricProfile p = sample();
    EXPECT_NE(parseProfile("rt1;nodes=9", p), ProfileError::None);
    EXPECT_EQ(p, sample());
}

TEST(Profile, ErrorsAreToldApart) {
    EXPECT_EQ(parseProfile(nullptr, *std::make_unique<FabricProfile>()), ProfileError::NotAProfile);
    for (const char* s : {"", "r", "rt", "rt1", "rtx;", "rt0;nodes=1", "rt01;", "rt;", "RT1;",
                          " rt1;", "rt-agreed/1 ", "rt99999999999;x"})
        EXPECT_EQ(errorOf(s), ProfileError::NotAProfile) << s;
    EXPECT_EQ(errorOf("rt2;whatever comes"), ProfileError::Version);
    EXPECT_EQ(errorOf("rt1;nodes=4"), ProfileError::Checksum);
    EXPECT_EQ(errorOf("rt1;nodes=4;crc=00000000"), ProfileError::Checksum);
    EXPECT_EQ(errorOf(std::string(kProfileTextMax, 'r')), ProfileError::TooLong);
    const std::string line = text(sample());
    std::string upper = line;
    for (std::size_t i = line.size() - 8; i < line.size(); ++i)
        upper[i] = static_cast<char>(std::toupper(upper[i]));
    if (upper != line) {
        EXPECT_EQ(errorOf(upper), ProfileError::Checksum);
    }
}

TEST(Profile, FieldsAreStrict) {
    const std::string line = text(sample());
    const std::string body = line.substr(0, line.rfind(";crc="));
    ASSERT_EQ(errorOf(sealed(body)), ProfileError::None);
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string changed = body;
        const auto at = changed.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return sealed(changed.replace(at, from.size(), to));
    };
    const std::pair<const char*, const char*> kCases[] = {
        {"nodes=4;", "nodes=0;"},
        {"nodes=4;", "nodes=04;"},
        {"nodes=4;", "nodes=-4;"},
        {"nodes=4;", "nodes=+4;"},
        {"nodes=4;", "nodes=;"},
        {"nodes=4;", "nodes=4x;"},
        {"nodes=4;", "nodes=4294967300;"},
        {"nodes=4;", "nodes=1000001;"},
        {"nodes=4;", "nodes=4;nodes=4;"},
        {"nodes=4;", "Nodes=4;"},
        {"nodes=4;", ""},
        {"measured=4", "measured=5"},
        {"net=ib", "net=i"},
        {"net=ib", "net=ibx"},
        {"net=ib", "net="},
        {"gdr=dmabuf", "gdr=5"},
        {"rails=8", "rails=33"},
        {"ra=1900", "ra=1000000001"},
        {"ra=1900", "ra=1.9"},
        {"complete=1", "complete=2"},
        {"complete=1", "complete=true"},
        {"slow=gpu-07.rack_2", "slow=a b"},
        {"slow=gpu-07.rack_2", "slow=a=b"},
        {"rules=ar", "rules=AR"},
        {"rules=ar", "rules= ar"},
        {";rules=", ";extra=1;rules="},
        {"ra=1900;raw=2300", "raw=2300;ra=1900"},
    };
    for (const auto& [from, to] : kCases)
        EXPECT_EQ(errorOf(with(from, to)), ProfileError::Field) << from << " -> " << to;
    EXPECT_EQ(errorOf(sealed(body + ";more=1")), ProfileError::Field);
    EXPECT_EQ(errorOf(sealed(body + ";")), ProfileError::Field);
    EXPECT_EQ(errorOf(sealed(with("slow=gpu-07.rack_2", "slow=" + std::string(64, 'h')))),
              ProfileError::Field);
}

TEST(Profile, WhatCannotBeReadIsNotWritten) {
    char out[kProfileTextMax];
    FabricProfile p = sample();
    const std::size_t length = formatProfile(p, out, sizeof out);
    EXPECT_EQ(formatProfile(p, out, length + 1), length);
    EXPECT_EQ(formatProfile(p, out, length), 0U);
    EXPECT_STREQ(out, "");
    EXPECT_EQ(formatProfile(p, out, 0), 0U);
    EXPECT_EQ(formatProfile(p, nullptr, 100), 0U);
    p.nodes = 0;
    EXPECT_EQ(formatProfile(p, out, sizeof out), 0U);
    p = sample();
    p.rails = kProfileMaxRails + 1;
    EXPECT_EQ(formatProfile(p, out, sizeof out), 0U);
    p = sample();
    std::strcpy(p.slow_node, "a;b");
    EXPECT_EQ(formatProfile(p, out, sizeof out), 0U);
    p = sample();
    std::memset(p.slow_node, 'x', sizeof p.slow_node);
    EXPECT_EQ(formatProfile(p, out, sizeof out), 0U);
    p = sample();
    p.transport = static_cast<ProfileTransport>(9);
    EXPECT_EQ(formatProfile(p, out, sizeof out), 0U);
}

TEST(Profile, EveryErrorHasAPhrase) {
    for (int e = 0; e <= static_cast<int>(ProfileError::Field); ++e)
        EXPECT_GT(std::strlen(describe(static_cast<ProfileError>(e))), 5U);
}

}  // namespace
}  // namespace rdmatune
