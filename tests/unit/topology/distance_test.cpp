#include "tuner/topology/distance.hpp"

#include <gtest/gtest.h>

namespace rdmatune {
namespace {

using Path = std::vector<PciAddress>;

PciAddress at(const char* text) {
    return *PciAddress::parse(text);
}

/// Root port, upstream port and one downstream port of a switch.
const PciAddress kRoot = at("0000:10:01.0");
const PciAddress kUp = at("0000:11:00.0");
const PciAddress kDownA = at("0000:12:00.0");
const PciAddress kDownB = at("0000:12:01.0");
const PciAddress kDevice = at("0000:13:00.0");
const PciAddress kOther = at("0000:14:00.0");

Distance ports(const Path& a, const Path& b, int numa_a = 0, int numa_b = 0, int package_a = -1,
               int package_b = -1) {
    return distanceBetween({kDevice, a, numa_a, package_a}, {kOther, b, numa_b, package_b},
                           PathForm::Ports);
}

TEST(Distance, OneSwitchIsPix) {
    EXPECT_EQ(ports({kRoot, kUp, kDownA}, {kRoot, kUp, kDownB}), Distance::Pix);
}

TEST(Distance, TwoFunctionsBehindOnePortArePix) {
    EXPECT_EQ(ports({kRoot, kUp, kDownA}, {kRoot, kUp, kDownA}), Distance::Pix);
    EXPECT_EQ(ports({kRoot}, {kRoot}), Distance::Pix);
}

TEST(Distance, ASwitchBelowASwitchIsPxb) {
    const Path deep = {kRoot, kUp, kDownA, at("0000:20:00.0"), at("0000:21:00.0")};
    EXPECT_EQ(ports(deep, {kRoot, kUp, kDownB}), Distance::Pxb);
    EXPECT_EQ(ports({kRoot, kUp, kDownB}, deep), Distance::Pxb);
}

TEST(Distance, TwoSwitchesBelowOneArePxb) {
    const Path left = {kRoot, kUp, kDownA, at("0000:20:00.0"), at("0000:21:00.0")};
    const Path right = {kRoot, kUp, kDownB, at("0000:30:00.0"), at("0000:31:00.0")};
    EXPECT_EQ(ports(left, right), Distance::Pxb);
    // Below the same inner switch the outer one is not on the way.
    const Path beside = {kRoot, kUp, kDownA, at("0000:20:00.0"), at("0000:21:01.0")};
    EXPECT_EQ(ports(left, beside), Distance::Pix);
}

TEST(Distance, TwoRootPortsOfOneHostBridgeArePhb) {
    EXPECT_EQ(ports({kRoot, kUp, kDownA}, {at("0000:10:03.0")}), Distance::Phb);
    EXPECT_EQ(ports({kRoot}, {at("0000:10:03.0")}), Distance::Phb);
}

TEST(Distance, DevicesOnTheRootBusArePhb) {
    EXPECT_EQ(distanceBetween({at("0000:00:05.0"), {}, 0, 0}, {at("0000:00:06.0"), {}, 0, 0},
                              PathForm::Ports),
              Distance::Phb);
}

TEST(Distance, SameBusNumberInAnotherDomainIsAnotherHostBridge) {
    EXPECT_EQ(ports({at("0003:00:00.0")}, {at("0004:00:00.0")}), Distance::Node);
    EXPECT_EQ(ports({at("0003:00:00.0")}, {at("0033:00:00.0")}, 0, 8), Distance::Sys);
}

TEST(Distance, OtherHostBridgesGoByNumaNodeAndPackage) {
    const Path other = {at("0000:40:01.0")};
    EXPECT_EQ(ports({kRoot}, other, 0, 0), Distance::Node);
    EXPECT_EQ(ports({kRoot}, other, 0, 1), Distance::Sys);
    EXPECT_EQ(ports({kRoot}, other, 1, 3, 0, 0), Distance::Node);
    EXPECT_EQ(ports({kRoot}, other, 1, 5, 0, 1), Distance::Sys);
    EXPECT_EQ(ports({kRoot}, other, -1, -1, 0, 0), Distance::Node);
    EXPECT_EQ(ports({kRoot}, other, -1, -1, 0, 1), Distance::Sys);
    EXPECT_EQ(ports({kRoot}, other, -1, 0), Distance::Unknown);
}

TEST(Distance, WithoutAnAddressTheNumaNodeTells) {
    const auto without = [](int numa, int package) {
        return distanceBetween({std::nullopt, {}, numa, package}, {kOther, {}, 0, 0},
                               PathForm::Ports);
    };
    EXPECT_EQ(without(-1, -1), Distance::Unknown);
    EXPECT_EQ(without(-1, 0), Distance::Unknown);
    EXPECT_EQ(without(0, 0), Distance::Node);
    EXPECT_EQ(without(1, 1), Distance::Sys);
}

Distance switches(const Path& a, const Path& b, int numa_a = 0, int numa_b = 0) {
    return distanceBetween({kDevice, a, numa_a, -1}, {kOther, b, numa_b, -1}, PathForm::Switches);
}

TEST(Distance, NcclFormCountsEveryBridgeAsASwitch) {
    EXPECT_EQ(switches({kUp}, {kUp}), Distance::Pix);
    EXPECT_EQ(switches({kUp, kDownA}, {kUp}), Distance::Pxb);
    EXPECT_EQ(switches({kUp, kDownA}, {kUp, kDownA}), Distance::Pix);
    EXPECT_EQ(switches({kUp, kDownA}, {kUp, kDownB}), Distance::Pxb);
}

TEST(Distance, NcclFormHasOneHostBridgeForANumaNode) {
    EXPECT_EQ(switches({kUp}, {at("0000:40:00.0")}, 1, 1), Distance::Phb);
    EXPECT_EQ(switches({kUp}, {}, 1, 1), Distance::Phb);
    EXPECT_EQ(switches({kUp}, {at("0000:40:00.0")}, 0, 1), Distance::Sys);
}

TEST(Distance, FillsOneRowForEachGpu) {
    Node node;
    node.gpus.resize(2);
    node.hcas.resize(3);
    for (Gpu& gpu : node.gpus) gpu.pci = kDevice;
    for (Hca& hca : node.hcas) hca.pci = kOther;
    node.gpus[0].pci_path = node.hcas[2].pci_path = {kRoot};
    node.gpus[1].pci_path = node.hcas[0].pci_path = node.hcas[1].pci_path = {at("0000:10:02.0")};
    fillDistances(node, PathForm::Ports);
    using enum Distance;
    EXPECT_EQ(node.distance,
              (std::vector<std::vector<Distance>>{{Phb, Phb, Pix}, {Pix, Pix, Phb}}));
}

TEST(Distance, NamesGoBothWays) {
    for (const Distance distance : {Distance::Pix, Distance::Pxb, Distance::Phb, Distance::Node,
                                    Distance::Sys, Distance::Unknown})
        EXPECT_EQ(parseDistance(toString(distance)), distance);
    EXPECT_EQ(parseDistance("pix"), std::nullopt);
    EXPECT_EQ(parseDistance(""), std::nullopt);
}

}  // namespace
}  // namespace rdmatune
