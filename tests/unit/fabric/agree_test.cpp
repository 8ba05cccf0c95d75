#include "tuner/fabric/agree.hpp"

#include <gtest/gtest.h>

namespace rdmatune::fabric {
namespace {

constexpr const char* kIb = "InfiniBand";
constexpr const char* kEth = "Ethernet";

Hello node(const std::string& host, int gpus, std::vector<HcaFact> hcas) {
    Hello out;
    out.host = host;
    out.version = "1.0";
    out.facts = {gpus, std::move(hcas), {}};
    return out;
}

std::vector<HcaFact> rails(int count, const char* layer, const std::string& subnet,
                           bool own_subnets = false) {
    std::vector<HcaFact> out;
    for (int i = 0; i < count; ++i)
        out.push_back({"mlx5_" + std::to_string(i), layer,
                       own_subnets ? subnet + std::to_string(i) : subnet, 400});
    return out;
}

std::string all(const Agreed& agreed) {
    std::string text;
    for (const std::string& note : agreed.notes) text += note + "\n";
    return text;
}

TEST(Agree, EqualNodesAgreeWithoutAWord) {
    const Agreed agreed =
        agree({node("a", 8, rails(4, kIb, "fe80")), node("b", 8, rails(4, kIb, "fe80"))});
    EXPECT_TRUE(agreed.notes.empty()) << all(agreed);
    EXPECT_EQ(agreed.agreement.rails, 4);
    EXPECT_EQ(agreed.agreement.link_layer, LinkLayer::InfiniBand);
    EXPECT_FALSE(agreed.agreement.rails_by_subnet);
    EXPECT_TRUE(agreed.agreement.rails_cross) << "one fabric: every rail reaches every other";
    EXPECT_TRUE(Agreement::parse(agreed.agreement.str()).has_value());
}

TEST(Agree, TheNodeThatLacksAnHcaIsNamedAndTheOthersDoWithFewer) {
    const Agreed agreed =
        agree({node("a", 8, rails(4, kIb, "fe80")), node("b", 8, rails(3, kIb, "fe80")),
               node("c", 8, rails(4, kIb, "fe80"))});
    EXPECT_EQ(agreed.agreement.rails, 3);
    ASSERT_EQ(agreed.notes.size(), 1U);
    EXPECT_EQ(agreed.notes[0],
              "the nodes differ in their number of usable HCAs: b: 3, the others: 4");
}

TEST(Agree, RailsWithSubnetsOfTheirOwnAreOrderedByThem) {
    auto turned = rails(4, kEth, "10.0.", true);
    std::swap(turned[0], turned[3]);
    const Agreed agreed =
        agree({node("a", 8, rails(4, kEth, "10.0.", true)), node("b", 8, turned)});
    EXPECT_TRUE(agreed.agreement.rails_by_subnet);
    EXPECT_EQ(agreed.agreement.rails, 4);
    EXPECT_EQ(agreed.agreement.subnets,
              (std::vector<std::string>{"10.0.0", "10.0.1", "10.0.2", "10.0.3"}));
    EXPECT_FALSE(agreed.agreement.rails_cross);
}

TEST(Agree, ASubnetThatOneNodeLacksIsLeftOut) {
    auto three = rails(4, kEth, "10.0.", true);
    three.erase(three.begin() + 1);
    const Agreed agreed = agree({node("a", 8, rails(4, kEth, "10.0.", true)), node("b", 8, three)});
    EXPECT_EQ(agreed.agreement.rails, 3);
    EXPECT_EQ(agreed.agreement.subnets, (std::vector<std::string>{"10.0.0", "10.0.2", "10.0.3"}));
    EXPECT_NE(all(agreed).find("b: 3"), std::string::npos) << all(agreed);
}

TEST(Agree, MixedLinkLayersTakeWhatAllHave) {
    auto both = rails(2, kIb, "fe80");
    both.push_back({"mlx5_9", kEth, "10.1", 100});
    const Agreed agreed = agree({node("a", 4, both), node("b", 4, rails(2, kIb, "fe80"))});
    EXPECT_EQ(agreed.agreement.link_layer, LinkLayer::InfiniBand);
    EXPECT_EQ(agreed.agreement.rails, 2);
    EXPECT_NE(all(agreed).find("link layer"), std::string::npos);
    const Agreed none =
        agree({node("a", 4, rails(2, kIb, "fe80")), node("b", 4, rails(2, kEth, "10.1"))});
    EXPECT_EQ(none.agreement.rails, 0);
    EXPECT_NE(all(none).find("so TCP is measured"), std::string::npos) << all(none);
}

TEST(Agree, OtherDifferencesAreNamed) {
    Hello odd = node("c", 7, {});
    odd.version = "1.1";
    odd.facts.error = "its hardware could not be read in 900 ms";
    const std::string text = all(agree({node("a", 8, {}), node("b", 8, {}), odd}));
    EXPECT_NE(text.find("version of rdma-tune: c: 1.1, the others: 1.0"), std::string::npos)
        << text;
    EXPECT_NE(text.find("number of GPUs: c: 7, the others: 8"), std::string::npos) << text;
    EXPECT_NE(text.find("c: its hardware could not be read in 900 ms"), std::string::npos) << text;
    const std::string two = all(agree({node("a", 8, {}), node("b", 4, {})}));
    EXPECT_NE(two.find("number of GPUs: b: 4, a: 8"), std::string::npos) << two;
}

TEST(Agree, ManyNodesAreCounted) {
    EXPECT_EQ(nameNodes({"a"}), "a");
    EXPECT_EQ(nameNodes({"a", "b", "c", "d"}), "a, b, c, d");
    EXPECT_EQ(nameNodes({"a", "b", "c", "d", "e", "f"}), "a, b, c, d and 2 more");
}

TEST(Agree, NoNodesAgreeOnNothing) {
    EXPECT_EQ(agree({}).agreement.rails, 0);
}

}  // namespace
}  // namespace rdmatune::fabric
