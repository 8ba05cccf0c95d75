#include "tuner/binding/agreement.hpp"

#include <gtest/gtest.h>

#include "tests/unit/support/node_builder.hpp"
#include "tuner/binding/gid.hpp"

namespace rdmatune {
namespace {

using testing::NodeBuilder;

TEST(Agreement, RoundTrip) {
    Agreement all;
    all.rails = 4;
    all.link_layer = LinkLayer::Ethernet;
    all.subnets = {"10.1.0.0/24", "10.2.0.0/24", "fd930000:00000001/64", "fe800000:00000000"};
    all.rails_by_subnet = true;
    all.rails_cross = true;
    for (const Agreement& agreement : {Agreement{}, all})
        EXPECT_EQ(Agreement::parse(agreement.str()), agreement) << agreement.str();
    EXPECT_EQ(all.str(),
              "rt-agreed/1 rails=4 layer=RoCE subnets=10.1.0.0/24,10.2.0.0/24,"
              "fd930000:00000001/64,fe800000:00000000 order=subnet cross=yes");
}

TEST(Agreement, RefusesWhatIsNotOne) {
    for (const char* text :
         {"", "rt-agreed/2 rails=1 layer=IB", "rt-agreed/1", "rt-agreed/1 rails=1",
          "rt-agreed/1 rails=-1 layer=IB", "rt-agreed/1 rails=x layer=IB",
          "rt-agreed/1 rails=1 layer=Token", "rt-agreed/1 rails=1 rails=2 layer=IB",
          "rt-agreed/1 rails=1 layer=IB order=size", "rt-agreed/1 rails=1 layer=IB subnets=",
          "rt-agreed/1 rails=1 layer=IB subnets=$(reboot)", "rt-agreed/1 rails=1 layer=IB cross",
          "rt-agreed/1 rails=1 layer=IB order=subnet", "rt-agreed/1  rails=1 layer=IB"})
        EXPECT_FALSE(Agreement::parse(text)) << text;
}

TEST(Agreement, PassesOverFieldsOfANewerRelease) {
    const auto agreement = Agreement::parse("rt-agreed/1 rails=2 layer=IB speed=400\n");
    ASSERT_TRUE(agreement);
    EXPECT_EQ(agreement->rails, 2);
}

TEST(SubnetOf, InfiniBandPrefixOfGidZero) {
    Node node = NodeBuilder().hca("mlx5_0").build();
    EXPECT_EQ(subnetOf(node.hcas[0]), "fe800000:00000000");
    node.hcas[0].gids[0].value = "fec0:0000:0000:0001:0002:c903:0000:0000";
    EXPECT_EQ(subnetOf(node.hcas[0]), "fec00000:00000001");
    node.hcas[0].gids.clear();
    EXPECT_EQ(subnetOf(node.hcas[0]), "");
}

TEST(SubnetOf, RoceNetworkOfTheBestAddress) {
    Node node = NodeBuilder().roce("mlx5_0", 7).build();
    EXPECT_EQ(subnetOf(node.hcas[0]), "10.7.0.0/24");
    node.hcas[0].gids = {{3, "fd93:16d3:59b6:0007:0000:0000:0000:0001", GidType::RoceV2, ""}};
    EXPECT_EQ(subnetOf(node.hcas[0]), "fd9316d3:59b60007/64");
    node.hcas[0].gids = {{0, "fe80:0000:0000:0000:0202:c9ff:fe00:0001", GidType::RoceV2, ""}};
    EXPECT_EQ(subnetOf(node.hcas[0]), "") << "every segment has the same link-local prefix";
}

TEST(Gid, ReadsOnlyTheFormOfSys) {
    EXPECT_TRUE(parseGid("fe80:0000:0000:0000:0002:c903:0000:0001\n"));
    for (const char* text : {"", "fe80::1", "fe80:0000:0000:0000:0002:c903:0000",
                             "fe80:0000:0000:0000:0002:c903:0000:000g",
                             "fe80:0000:0000:0000:0002:c903:0000:0001:0002"})
        EXPECT_FALSE(parseGid(text)) << text;
}

TEST(Gid, TextShowsIpv4AsPeopleWriteIt) {
    EXPECT_EQ(gidText({3, "0000:0000:0000:0000:0000:ffff:0a01:0107", GidType::RoceV2, ""}),
              "10.1.1.7");
    EXPECT_EQ(gidText({3, "fd93:0000:0000:0000:0000:0000:0000:0001", GidType::RoceV2, ""}),
              "fd93:0000:0000:0000:0000:0000:0000:0001");
}

}  // namespace
}  // namespace rdmatune
