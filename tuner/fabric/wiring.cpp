#include "tuner/fabric/wiring.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "tuner/base/text.hpp"
#include "tuner/fabric/wire.hpp"

namespace rdmatune::fabric {
namespace {

using LanesOfPeer = std::map<int, std::vector<Lane*>>;

void failAll(const std::vector<Lane*>& lanes, const std::string& why) {
    for (Lane* lane : lanes) {
        if (lane->error.empty()) lane->error = why;
        lane->link.reset();
    }
}

/// What is told about a lane: what its two ends must have in common, and where this end is.
std::string describeLane(const Lane& lane, const Transport& transport) {
    if (!lane.link) return "-";
    return transport.railIdentity(lane.rail) + "@" + lane.link->address();
}

void connectOne(Lane& lane, std::string_view told, const Transport& transport,
                const std::string& cookie, Deadline deadline) {
    if (!lane.link) return;
    const auto at = told.rfind('@');
    std::string why;
    if (at == std::string_view::npos) {
        why = "its rail " + std::to_string(lane.rail) + " could not be opened";
    } else if (told.substr(0, at) != transport.railIdentity(lane.rail)) {
        why = "rail " + std::to_string(lane.rail) + " is " + transport.railIdentity(lane.rail) +
              " here and " + std::string(told.substr(0, at)) + " there";
    } else if (Status status =
                   lane.link->connect(told.substr(at + 1), lane.active, cookie, deadline);
               !status) {
        why = status.error().message;
    }
    if (why.empty()) return;
    lane.error = why;
    lane.link.reset();
}

/// The peer's line for this order; older ones are dropped.
Result<std::string> answerTo(Mesh& mesh, int peer, const WiringOrder& order) {
    for (;;) {
        Result<std::string> line = mesh.receiveLine(peer, order.deadline);
        if (!line) return line;
        const auto space = line->find(' ');
        const auto id = parseInt<int>(std::string_view(*line).substr(0, space));
        if (!id || space == std::string::npos)
            return Error{"sent something that was not asked for"};
        if (*id < order.id) continue;
        if (*id > order.id) return Error{"has gone on to the next step"};
        return line->substr(space + 1);
    }
}

}  // namespace

void declineLanes(Mesh& mesh, const std::set<int>& peers, const WiringOrder& order) {
    for (const int peer : peers)
        if (mesh.connected(peer))
            (void)mesh.sendLine(peer, std::to_string(order.id) + " !", order.deadline);
}

void connectLanes(Mesh& mesh, Transport& transport, std::vector<Lane>& lanes,
                  const WiringOrder& order) {
    const Deadline deadline = order.deadline;
    LanesOfPeer of_peer;
    std::set<int> peers;
    for (Lane& lane : lanes) {
        of_peer[lane.peer].push_back(&lane);
        peers.insert(lane.peer);
    }
    for (const auto& [peer, why] : mesh.connect(peers, deadline)) failAll(of_peer[peer], why);

    // Everybody tells first and listens then: no circle of agents that wait for each other.
    for (auto& [peer, shared] : of_peer) {
        if (!mesh.connected(peer)) continue;
        std::vector<std::string> told;
        for (Lane* lane : shared) {
            Result<std::unique_ptr<Link>> link = transport.open(lane->rail);
            if (link)
                lane->link = std::move(*link);
            else
                lane->error = link.error().message;
            told.push_back(describeLane(*lane, transport));
        }
        if (Status status =
                mesh.sendLine(peer, std::to_string(order.id) + " " + join(told, " "), deadline);
            !status)
            failAll(shared, status.error().message);
    }
    std::map<int, std::string> answers;
    for (auto& [peer, shared] : of_peer) {
        if (!mesh.connected(peer)) continue;
        Result<std::string> line = answerTo(mesh, peer, order);
        if (!line)
            failAll(shared, line.error().message);
        else if (*line == "!")
            failAll(shared, "it has no usable transport");
        else if (split(*line, ' ').size() != shared.size())
            failAll(shared, "counts other links than this agent does");
        else
            answers[peer] = std::move(*line);
    }
    // Active ends first: an accepting end then finds its peer already waiting.
    for (const bool active : {true, false})
        for (auto& [peer, line] : answers) {
            const auto told = split(line, ' ');
            for (std::size_t i = 0; i < told.size(); ++i)
                if (Lane& lane = *of_peer[peer][i]; lane.active == active)
                    connectOne(lane, told[i], transport, order.cookie, deadline);
        }
}

}  // namespace rdmatune::fabric
