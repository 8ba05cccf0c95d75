// Which of the working HCAs belong to the compute fabric.
#include <algorithm>
#include <array>
#include <cstdio>

#include "tuner/base/text.hpp"
#include "tuner/binding/gid.hpp"
#include "tuner/binding/rules.hpp"

namespace rdmatune {
namespace {

/// One link layer carries the training when it has this many times the other's total rate;
/// closer than that, nearness to the GPUs decides. Twice is what one generation of links adds.
constexpr double kClearlyFaster = 2;

std::string gbps(double rate) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%g Gbit/s", rate);
    return text.data();
}

std::string list(const Node& node, const std::vector<int>& hcas) {
    std::vector<std::string> labels;
    for (const int hca : hcas) labels.push_back(node.hcas[hca].label());
    return join(labels, ", ");
}

/// HCAs that the rules of this file may still leave out.
std::vector<int> judged(const Node& node, const PlanRequest& request, const Eligibility& state) {
    std::vector<int> out;
    for (const int hca : state.usable())
        if (!includedBySite(request, node.hcas[hca])) out.push_back(hca);
    return out;
}

std::vector<int> ofLayer(const Node& node, const std::vector<int>& hcas, LinkLayer layer) {
    std::vector<int> out;
    for (const int hca : hcas)
        if (node.hcas[hca].link_layer == layer) out.push_back(hca);
    return out;
}

double totalRate(const Node& node, const std::vector<int>& hcas) {
    double sum = 0;
    for (const int hca : hcas) sum += node.hcas[hca].likelyGbps();
    return sum;
}

/// Sum over the GPUs of the distance to the nearest of `hcas`.
int totalDistance(const Node& node, const std::vector<int>& gpus, const std::vector<int>& hcas) {
    int sum = 0;
    for (const int gpu : gpus) {
        auto best = Distance::Unknown;
        for (const int hca : hcas) best = std::min(best, distanceBetween(node, gpu, hca));
        sum += static_cast<int>(best);
    }
    return sum;
}

/// "carry 800 Gbit/s", or what stands for it where no rate is known.
std::string carry(const Node& node, const std::vector<int>& hcas) {
    const bool known =
        std::ranges::all_of(hcas, [&](int hca) { return node.hcas[hca].rate_gbps > 0; });
    return (known ? "carry " : "have PCIe links for ") + gbps(totalRate(node, hcas));
}

struct LayerChoice {
    LinkLayer layer;
    std::string because;
};

LayerChoice chooseLayer(const Node& node, const PlanRequest& request, const std::vector<int>& gpus,
                        const std::vector<int>& ib, const std::vector<int>& ethernet) {
    const auto named = [&](bool ib_wins, std::string because) {
        return LayerChoice{ib_wins ? LinkLayer::InfiniBand : LinkLayer::Ethernet,
                           list(node, ib_wins ? ib : ethernet) + " " + std::move(because)};
    };
    if (request.agreed && request.agreed->link_layer == LinkLayer::InfiniBand && !ib.empty())
        return named(true, "are what all nodes of the job have");
    if (request.agreed && request.agreed->link_layer == LinkLayer::Ethernet && !ethernet.empty())
        return named(false, "are what all nodes of the job have");
    const double ib_rate = totalRate(node, ib);
    const double ethernet_rate = totalRate(node, ethernet);
    const auto& faster = ib_rate > ethernet_rate ? ib : ethernet;
    if (ib_rate > 0 && ethernet_rate > 0 &&
        std::max(ib_rate, ethernet_rate) >= kClearlyFaster * std::min(ib_rate, ethernet_rate))
        return named(ib_rate > ethernet_rate, carry(node, faster) + " together against " +
                                                  gbps(std::min(ib_rate, ethernet_rate)));
    const int ib_distance = totalDistance(node, gpus, ib);
    const int ethernet_distance = totalDistance(node, gpus, ethernet);
    if (ib_distance != ethernet_distance)
        return named(ib_distance < ethernet_distance, "are nearer to the GPUs");
    if (ib_rate != ethernet_rate)
        return named(ib_rate > ethernet_rate, carry(node, faster) + " together");
    return named(true, "are InfiniBand, and nothing else tells the two apart");
}

void applyLinkLayer(const Node& node, const PlanRequest& request, const std::vector<int>& gpus,
                    Eligibility& out) {
    const auto usable = out.usable();
    const auto ib = ofLayer(node, usable, LinkLayer::InfiniBand);
    const auto ethernet = ofLayer(node, usable, LinkLayer::Ethernet);
    if (ib.empty() || ethernet.empty()) return;
    const auto choice = chooseLayer(node, request, gpus, ib, ethernet);
    for (const int hca : judged(node, request, out)) {
        const LinkLayer layer = node.hcas[hca].link_layer;
        if (layer == LinkLayer::Unknown || layer == choice.layer) continue;
        out.verdicts[hca] = {"other-link-layer",
                             "Its link layer is " + std::string(toString(layer)) +
                                 ", the compute fabric's is " +
                                 std::string(toString(choice.layer)) + ": " + choice.because + "."};
    }
}

/// A 169.254 or fe80 address reaches nobody beyond one segment, so it loses to any routable one.
void applyLinkLocal(const Node& node, const PlanRequest& request, Eligibility& out) {
    std::vector<int> routable;
    for (const int hca : out.usable())
        if (node.hcas[hca].gids_known && !onlyLinkLocal(node.hcas[hca])) routable.push_back(hca);
    if (routable.empty()) return;
    for (const int hca : judged(node, request, out))
        if (onlyLinkLocal(node.hcas[hca]))
            out.verdicts[hca] = {"link-local", "All its addresses are link-local (such as " +
                                                   gidText(node.hcas[hca].gids.front()) +
                                                   "), while " + list(node, routable) +
                                                   " can be reached from other nodes."};
}

void applySubnet(const Node& node, const PlanRequest& request, Eligibility& out) {
    auto common = request.common_subnets;
    if (request.agreed)
        common.insert(common.end(), request.agreed->subnets.begin(), request.agreed->subnets.end());
    if (common.empty()) return;
    const auto outside = [&](int hca) {
        const std::string subnet = subnetOf(node.hcas[hca]);
        return !subnet.empty() && std::ranges::find(common, subnet) == common.end();
    };
    const auto usable = out.usable();
    if (std::ranges::all_of(usable, outside)) {
        if (!usable.empty())
            out.notes.emplace_back(
                "No HCA of this node is on a subnet that the other nodes reach; all are kept.");
        return;
    }
    for (const int hca : judged(node, request, out))
        if (outside(hca))
            out.verdicts[hca] = {"other-subnet", "Its subnet " + subnetOf(node.hcas[hca]) +
                                                     " is not on every node of the job."};
}

/// NCCL gives every HCA an equal share, so n HCAs together carry n times the slowest one's rate.
/// The fastest ones are taken for as long as that grows (or stays): a slower one would hold the
/// others back. Returns the slowest rate that is still taken, 0 when no rate is known.
double slowestWorthwhile(std::vector<double> rates) {
    std::ranges::sort(rates, std::greater<>());
    double best = 0;
    double slowest = 0;
    for (std::size_t i = 0; i < rates.size(); ++i)
        if (const double together = static_cast<double>(i + 1) * rates[i]; together >= best) {
            best = together;
            slowest = rates[i];
        }
    return slowest;
}

/// Below this fraction of the others' rate, being nearer does not make up for it: one HCA alone at
/// full rate carries more than two at the slower one's.
constexpr double kMuchSlower = 0.5;

/// Whether some GPU would lose its nearest HCA with this one.
bool isNearestForSome(const Node& node, const std::vector<int>& gpus, int hca,
                      const std::vector<int>& faster) {
    return std::ranges::any_of(gpus, [&](int gpu) {
        return std::ranges::all_of(faster, [&](int other) {
            return distanceBetween(node, gpu, hca) < distanceBetween(node, gpu, other);
        });
    });
}

void applySpeed(const Node& node, const PlanRequest& request, const std::vector<int>& gpus,
                Eligibility& out) {
    std::vector<double> rates;
    const auto usable = out.usable();
    for (const int hca : usable)
        if (const double rate = node.hcas[hca].likelyGbps(); rate > 0) rates.push_back(rate);
    const double slowest = slowestWorthwhile(rates);
    std::vector<int> faster;
    for (const int hca : usable)
        if (node.hcas[hca].likelyGbps() >= slowest) faster.push_back(hca);
    for (const int hca : judged(node, request, out)) {
        const Hca& it = node.hcas[hca];
        // A bond may report one port's rate, and has two.
        const double rate = it.likelyGbps() * (it.is_bond && it.rate_gbps > 0 ? 2 : 1);
        if (rate <= 0 || rate >= slowest) continue;
        if (rate >= kMuchSlower * slowest && isNearestForSome(node, gpus, hca, faster)) continue;
        const std::string here = it.rate_gbps > 0 ? "It runs at " : "Its PCIe link is good for ";
        out.verdicts[hca] = {"slow", here + gbps(it.likelyGbps()) + ", the others at " +
                                         gbps(slowest) +
                                         " or more: with equal shares it would hold them back."};
    }
}

/// RDMA in software costs the CPU that the job needs, and its interface is often an HCA's own.
void applySoftware(const Node& node, const PlanRequest& request, Eligibility& out) {
    const auto usable = out.usable();
    if (std::ranges::all_of(usable, [&](int hca) { return node.hcas[hca].software; })) return;
    for (const int hca : judged(node, request, out))
        if (node.hcas[hca].software)
            out.verdicts[hca] = {"software",
                                 "It is RDMA in software over a network interface, and the node "
                                 "has HCAs."};
}

}  // namespace

void applyFabric(const Node& node, const PlanRequest& request, const std::vector<int>& gpus,
                 Eligibility& out) {
    applySoftware(node, request, out);
    applyLinkLocal(node, request, out);
    applyLinkLayer(node, request, gpus, out);
    applySubnet(node, request, out);
    applySpeed(node, request, gpus, out);
}

}  // namespace rdmatune
