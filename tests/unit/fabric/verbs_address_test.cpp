#include "tuner/fabric/verbs_address.hpp"

#include <gtest/gtest.h>

namespace rdmatune::fabric {
namespace {

VerbsAddress largest() {
    VerbsAddress out;
    out.ethernet = true;
    out.roce_v1 = true;
    out.messages = true;
    out.mtu = 5;
    out.lid = 0xffff;
    out.qpn = 0xffffff;
    out.psn = 0xffffff;
    out.gid.fill(0xff);
    out.rd_atomic = 255;
    out.control_key = UINT32_MAX;
    out.control = UINT64_MAX;
    out.stream_key = UINT32_MAX;
    out.stream = UINT64_MAX;
    return out;
}

VerbsAddress onInfiniBand(std::uint8_t subnet, std::uint16_t lid) {
    VerbsAddress out;
    out.mtu = 5;
    out.lid = lid;
    out.gid[0] = 0xfe;
    out.gid[1] = 0x80;
    out.gid[7] = subnet;
    out.gid[15] = static_cast<std::uint8_t>(lid);
    return out;
}

TEST(VerbsAddress, ComesBackFromItsText) {
    for (const VerbsAddress& address : {largest(), onInfiniBand(3, 17)}) {
        const auto back = VerbsAddress::parse(address.str());
        ASSERT_TRUE(back) << address.str();
        EXPECT_EQ(*back, address);
    }
}

TEST(VerbsAddress, FitsWhereALinkMayPutIt) {
    EXPECT_LE(largest().str().size(), 128U);
    EXPECT_EQ(largest().str().find(' '), std::string::npos);
}

TEST(VerbsAddress, RefusesWhatIsNotOne) {
    const std::string good = largest().str();
    EXPECT_FALSE(VerbsAddress::parse(""));
    EXPECT_FALSE(VerbsAddress::parse("rc2" + good.substr(3)));
    EXPECT_FALSE(VerbsAddress::parse(good + ":0"));
    EXPECT_FALSE(VerbsAddress::parse(good.substr(0, good.size() - 17)));
    EXPECT_FALSE(VerbsAddress::parse(good + "g"));
    for (std::size_t cut = 0; cut < good.size(); ++cut) {
        const auto back = VerbsAddress::parse(good.substr(0, cut));
        EXPECT_TRUE(!back || *back != largest()) << cut;
    }
    std::string mtu = good;
    mtu[6] = '6';  // there are five MTUs
    EXPECT_FALSE(VerbsAddress::parse(mtu));
    mtu[6] = '0';
    EXPECT_FALSE(VerbsAddress::parse(mtu));
}

TEST(VerbsAddress, NamesThePeerAsPeopleDo) {
    VerbsAddress roce;
    roce.ethernet = true;
    roce.qpn = 0x11;
    roce.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 2};
    EXPECT_EQ(roce.describe(), "10.9.0.2 QP 0x11");
    EXPECT_EQ(onInfiniBand(0, 3).describe(), "LID 3 QP 0x0");
}

TEST(VerbsAddress, RoutesGloballyOnlyWhereItMust) {
    EXPECT_FALSE(needsGlobalRoute(onInfiniBand(1, 4), onInfiniBand(1, 5)));
    EXPECT_TRUE(needsGlobalRoute(onInfiniBand(1, 4), onInfiniBand(2, 5)));
    EXPECT_TRUE(needsGlobalRoute(onInfiniBand(1, 4), onInfiniBand(1, 0)));
    EXPECT_TRUE(needsGlobalRoute(largest(), largest()));
}

TEST(VerbsAddress, SaysWhatKeepsTwoApart) {
    EXPECT_EQ(mismatch(largest(), largest()), "");
    EXPECT_NE(mismatch(largest(), onInfiniBand(1, 1)).find("InfiniBand"), std::string::npos);
    VerbsAddress v2 = largest();
    v2.roce_v1 = false;
    EXPECT_NE(mismatch(v2, largest()).find("RoCE v2 GID, the other RoCE v1"), std::string::npos);
    VerbsAddress quiet = largest();
    quiet.messages = false;
    EXPECT_NE(mismatch(quiet, largest()), "");
}

}  // namespace
}  // namespace rdmatune::fabric
