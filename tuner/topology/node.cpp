#include "tuner/topology/node.hpp"

#include <array>
#include <utility>

namespace rdmatune {
namespace {

constexpr std::array<std::pair<Distance, std::string_view>, 6> kDistances{
    {{Distance::Pix, "PIX"},
     {Distance::Pxb, "PXB"},
     {Distance::Phb, "PHB"},
     {Distance::Node, "NODE"},
     {Distance::Sys, "SYS"},
     {Distance::Unknown, "?"}}};

}  // namespace

std::string_view toString(Distance distance) {
    for (const auto& [value, name] : kDistances)
        if (value == distance) return name;
    return "?";
}

std::optional<Distance> parseDistance(std::string_view text) {
    for (const auto& [value, name] : kDistances)
        if (name == text) return value;
    return std::nullopt;
}

std::string_view toString(LinkLayer layer) {
    switch (layer) {
        case LinkLayer::InfiniBand:
            return "InfiniBand";
        case LinkLayer::Ethernet:
            return "Ethernet";
        case LinkLayer::Unknown:
            break;
    }
    return "?";
}

std::string_view toString(PortState state) {
    switch (state) {
        case PortState::Down:
            return "DOWN";
        case PortState::Init:
            return "INIT";
        case PortState::Armed:
            return "ARMED";
        case PortState::Active:
            return "ACTIVE";
        case PortState::Unknown:
            break;
    }
    return "?";
}

std::string_view toString(GidType type) {
    switch (type) {
        case GidType::RoceV1:
            return "RoCE v1";
        case GidType::RoceV2:
            return "RoCE v2";
        case GidType::InfiniBand:
            break;
    }
    return "IB";
}

std::string_view toString(TopologySource source) {
    switch (source) {
        case TopologySource::HwlocXml:
            return "hwloc-xml";
        case TopologySource::NcclXml:
            return "nccl-xml";
        case TopologySource::TopoMatrix:
            return "topo-matrix";
        case TopologySource::Json:
            return "json";
        case TopologySource::Live:
            break;
    }
    return "live";
}

std::string Hca::label() const {
    return port == 1 ? name : name + ':' + std::to_string(port);
}

double Hca::likelyGbps() const {
    if (rate_gbps > 0) return rate_gbps;
    if (pcie_gbps > 0) return pcie_gbps;
    // Of ten bits on the wire eight are data up to 5 GT/s, of 130 bits 128 above (PCI Express Base
    // Specification, 4.2).
    const double coding = link.speed_gts <= 5 ? 0.8 : 128.0 / 130.0;
    return link.speed_gts * link.width * coding;
}

}  // namespace rdmatune
