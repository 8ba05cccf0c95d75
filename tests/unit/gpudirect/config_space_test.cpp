#include "tuner/gpudirect/config_space.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/support/pci_config.hpp"

namespace rdmatune {
namespace {

using testing::PciConfig;

TEST(ConfigSpace, RootSeesAcsAtsAndOrdering) {
    PciConfig config;
    config.acs = 0x001d;
    config.ats = true;
    const ConfigSpace seen = parseConfigSpace(config.bytes());
    EXPECT_EQ(seen.visible_bytes, 4096);
    EXPECT_TRUE(seen.pcie);
    EXPECT_EQ(seen.acs, 0x001d);
    EXPECT_EQ(seen.ats, true);
    EXPECT_EQ(seen.relaxed_ordering, true);
    EXPECT_TRUE(seen.extendedSeen());
}

TEST(ConfigSpace, OrdinaryUserSeesNothingAndKnowsIt) {
    PciConfig config;
    config.acs = 0x001d;
    const ConfigSpace seen = parseConfigSpace(config.bytes().substr(0, 64));
    EXPECT_EQ(seen.visible_bytes, 64);
    EXPECT_FALSE(seen.acs);
    EXPECT_FALSE(seen.relaxed_ordering);
    EXPECT_FALSE(seen.extendedSeen());
}

TEST(ConfigSpace, CutAfterTheConventionalPart) {
    PciConfig config;
    config.acs = 0x001d;
    config.relaxed_ordering = false;
    const ConfigSpace seen = parseConfigSpace(config.bytes().substr(0, 256));
    EXPECT_EQ(seen.relaxed_ordering, false);
    EXPECT_FALSE(seen.acs);
    EXPECT_FALSE(seen.extendedSeen());
}

TEST(ConfigSpace, ConventionalPciHasNoExtendedPart) {
    PciConfig config;
    config.pcie = false;
    const ConfigSpace seen = parseConfigSpace(config.bytes());
    EXPECT_FALSE(seen.pcie);
    EXPECT_TRUE(seen.extendedSeen());
    EXPECT_FALSE(seen.acs);
}

TEST(ConfigSpace, NamesOnlyTheRedirectingBits) {
    EXPECT_EQ(acsRedirectNames(kAcsSourceValidation), "");
    EXPECT_EQ(acsRedirectNames(0x001d), "ReqRedir+ CmpltRedir+");
    EXPECT_EQ(acsRedirectNames(kAcsEgressControl), "EgressCtrl+");
}

TEST(ConfigSpace, CircularListsEnd) {
    std::string bytes = PciConfig{}.bytes();
    bytes[0x41] = 0x40;  // power management points at itself
    bytes[0x102] = 0x01;
    bytes[0x103] = 0x10;  // error reporting points at itself
    const ConfigSpace seen = parseConfigSpace(bytes);
    EXPECT_FALSE(seen.pcie);
    EXPECT_FALSE(seen.acs);
}

TEST(ConfigSpace, AnyBytesAreSafe) {
    std::mt19937 random(1);
    for (int round = 0; round < 20000; ++round) {
        std::string bytes(random() % 4200, '\0');
        for (char& c : bytes) c = static_cast<char>(random());
        const ConfigSpace seen = parseConfigSpace(bytes);
        EXPECT_LE(seen.visible_bytes, 4096);
        EXPECT_EQ(seen.acs.has_value() && bytes.size() <= 256, false);
    }
}

}  // namespace
}  // namespace rdmatune
