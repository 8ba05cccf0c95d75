#include "tuner/fabric/phases.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include "tuner/fabric/statistics.hpp"

namespace rdmatune::fabric {
namespace {

/// Parts of a slot: an initiating end stops early, so that its last word reaches the other end
/// while that one still listens; the rest lets both be at the next slot's start in time.
constexpr double kInitiatorShare = 0.7;
constexpr double kAnswererShare = 0.95;

Clock::time_point partOf(Clock::time_point start, std::chrono::milliseconds slot, double share) {
    return start + std::chrono::duration_cast<Clock::duration>(slot * share);
}

}  // namespace

Programme programmeFor(int nodes, int rails) {
    Programme out;
    for (const Pattern pattern : kPatterns) out.latency_slots += roundsOf(pattern, nodes);
    out.bandwidth_slots = rails > 1 ? 3 : 2;
    return out;
}

/// One direction of one link for the length of a slot.
struct Phases::Stream {
    Lane* lane = nullptr;
    bool sends = false;
    Edge edge;
    bool down = false;
    double gbs = 0;
    std::string error;
};

void Phases::connect(int id, Deadline deadline) {
    const std::vector<Edge> edges = edgesOfNode(self_, nodes_);
    const auto rails = static_cast<std::size_t>(transport_->rails());
    std::size_t count = 0;
    for (const Edge& edge : edges) count += rails * (edge.pattern == Pattern::Ring ? 1 : 2);
    lanes_ = std::vector<Lane>(count);
    std::size_t next = 0;
    for (const Edge& edge : edges) {
        Wired wired{edge, {}, {}};
        const auto add = [&](std::vector<Lane*>& direction) {
            for (std::size_t rail = 0; rail < rails; ++rail) {
                Lane& lane = lanes_[next++];
                lane.peer = peerOf(edge);
                lane.active = edge.from == self_;
                lane.rail = static_cast<int>(rail);
                direction.push_back(&lane);
            }
        };
        add(wired.forward);
        if (edge.pattern != Pattern::Ring) add(wired.backward);
        wired_.push_back(std::move(wired));
    }
    connectLanes(mesh_, *transport_, lanes_, {id, cookie_, deadline});
}

EdgeResult& Phases::resultOf(std::vector<EdgeResult>& results, const Edge& edge, bool down) const {
    for (EdgeResult& result : results)
        if (result.edge == edge && result.down == down) return result;
    results.emplace_back();
    results.back().edge = edge;
    results.back().down = down;
    return results.back();
}

/// All rails one after the other. The figure is the median rail's.
Result<Latency> Phases::pingPongRails(const std::vector<Lane*>& lanes, bool initiator,
                                      Clock::time_point start, const Tempo& tempo) const {
    std::vector<Latency> rails;
    std::string error = "no link";
    for (std::size_t rail = 0; rail < lanes.size(); ++rail) {
        if (!lanes[rail]->link) {
            error = lanes[rail]->error;
            continue;
        }
        const double share =
            kInitiatorShare * static_cast<double>(rail + 1) / static_cast<double>(lanes.size());
        const Deadline deadline = partOf(start, tempo.latency, initiator ? share : kAnswererShare);
        const int rounds = std::max(1, tempo.rounds / static_cast<int>(lanes.size()));
        Result<Latency> figures = lanes[rail]->link->pingPong(initiator, rounds, deadline);
        if (figures)
            rails.push_back(*figures);
        else
            error = figures.error().message;
    }
    if (rails.empty()) return Error{error};
    std::sort(rails.begin(), rails.end(),
              [](const Latency& a, const Latency& b) { return a.median_us < b.median_us; });
    return rails[(rails.size() - 1) / 2];
}

void Phases::pingPongs(std::vector<EdgeResult>& results, Pattern pattern, int round,
                       Clock::time_point start, const Tempo& tempo) {
    for (Wired& wired : wired_) {
        if (wired.edge.pattern != pattern || wired.edge.round != round) continue;
        const bool initiator = wired.edge.from == self_;
        Result<Latency> figures = pingPongRails(wired.forward, initiator, start, tempo);
        if (!initiator) continue;
        EdgeResult& result = resultOf(results, wired.edge, false);
        if (figures)
            result.latency = *figures;
        else
            result.error = figures.error().message;
    }
}

std::vector<Phases::Stream> Phases::streamsOf(bool trees, std::size_t rails) {
    std::vector<Stream> streams;
    for (Wired& wired : wired_) {
        if ((wired.edge.pattern != Pattern::Ring) != trees) continue;
        const bool from_here = wired.edge.from == self_;
        for (std::size_t rail = 0; rail < std::min(rails, wired.forward.size()); ++rail) {
            streams.push_back({wired.forward[rail], from_here, wired.edge, false, 0, {}});
            if (trees)
                streams.push_back({wired.backward[rail], !from_here, wired.edge, true, 0, {}});
        }
    }
    return streams;
}

void Phases::runStreams(std::vector<Stream>& streams, Clock::time_point start,
                        const Tempo& tempo) const {
    const auto until = partOf(start, tempo.bandwidth, kInitiatorShare);
    const Deadline deadline = partOf(start, tempo.bandwidth, kAnswererShare);
    std::vector<std::thread> threads;
    for (Stream& stream : streams) {
        if (!stream.lane->link) {
            stream.error = stream.lane->error;
            continue;
        }
        threads.emplace_back([&stream, until, deadline, bytes = tempo.message_bytes] {
            Link& link = *stream.lane->link;
            if (!stream.sends) {
                if (Status status = link.receive(deadline); !status)
                    stream.error = status.error().message;
                return;
            }
            Result<Throughput> sent = link.send(bytes, until, deadline);
            if (sent)
                stream.gbs = sent->gbs();
            else
                stream.error = sent.error().message;
        });
    }
    for (std::thread& thread : threads) thread.join();
}

std::vector<EdgeResult> Phases::run(Clock::time_point start, const Tempo& tempo) {
    std::vector<EdgeResult> results;
    auto slot = start;
    for (const Pattern pattern : kPatterns)
        for (int round = 0; round < roundsOf(pattern, nodes_); ++round) {
            if (tempo.latency.count() == 0) continue;
            std::this_thread::sleep_until(slot);
            pingPongs(results, pattern, round, slot, tempo);
            slot += tempo.latency;
        }
    const auto rails = static_cast<std::size_t>(transport_->rails());
    const auto stream = [&](bool trees, std::size_t used, bool alone) {
        if (tempo.bandwidth.count() == 0) return;
        std::vector<Stream> streams = streamsOf(trees, used);
        std::this_thread::sleep_until(slot);
        runStreams(streams, slot, tempo);
        slot += tempo.bandwidth;
        for (const Stream& one : streams) {
            if (!one.sends) continue;
            EdgeResult& result = resultOf(results, one.edge, one.down);
            if (!one.error.empty()) result.error = one.error;
            if (alone) {
                result.rail_gbs = one.gbs;
                continue;
            }
            result.gbs += one.gbs;
            result.rails.push_back(one.gbs);
        }
    };
    stream(false, rails, false);
    stream(true, rails, false);
    if (rails > 1) stream(false, 1, true);
    if (rails == 1)
        for (EdgeResult& result : results)
            if (result.edge.pattern == Pattern::Ring) result.rail_gbs = result.gbs;
    return results;
}

std::vector<PairResult> Phases::retest(int id, const std::vector<PairTest>& pairs,
                                       Clock::time_point start, const Tempo& tempo) {
    std::vector<PairTest> own;
    for (const PairTest& pair : pairs)
        if (pair.from == self_ || pair.to == self_) own.push_back(pair);
    const auto rails = static_cast<std::size_t>(transport_->rails());
    std::vector<Lane> lanes(own.size() * rails);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        const PairTest& pair = own[i / rails];
        lanes[i].peer = pair.from == self_ ? pair.to : pair.from;
        lanes[i].active = pair.from == self_;
        lanes[i].rail = static_cast<int>(i % rails);
    }
    connectLanes(mesh_, *transport_, lanes, {id, cookie_, start});

    std::vector<PairResult> results;
    for (std::size_t i = 0; i < own.size(); ++i) {
        const PairTest& pair = own[i];
        const bool from_here = pair.from == self_;
        const auto slot = start + pair.slot * (tempo.latency + tempo.bandwidth);
        std::vector<Lane*> of_pair;
        for (std::size_t rail = 0; rail < rails; ++rail)
            of_pair.push_back(&lanes[i * rails + rail]);
        std::this_thread::sleep_until(slot);
        Result<Latency> figures = pingPongRails(of_pair, from_here, slot, tempo);
        std::vector<Stream> streams;
        for (Lane* lane : of_pair) streams.push_back({lane, from_here, {}, false, 0, {}});
        std::this_thread::sleep_until(slot + tempo.latency);
        runStreams(streams, slot + tempo.latency, tempo);
        if (!from_here) continue;
        PairResult result{pair.id, pair.from, pair.to, std::nullopt, 0, {}};
        if (figures)
            result.latency = *figures;
        else
            result.error = figures.error().message;
        for (const Stream& stream : streams) {
            result.gbs += stream.gbs;
            if (!stream.error.empty()) result.error = stream.error;
        }
        results.push_back(std::move(result));
    }
    return results;
}

bool Phases::collectiveLinks(CollectiveLinks& out) {
    const auto links = [](const std::vector<Lane*>& lanes) {
        CollectiveLinks::Rails rails;
        for (Lane* lane : lanes)
            if (lane->link) rails.push_back(lane->link.get());
        return rails;
    };
    out = {};
    out.node = self_;
    out.nodes = nodes_;
    std::array<std::size_t, 2> children{};
    for (const Wired& wired : wired_) {
        for (const auto* direction : {&wired.forward, &wired.backward})
            for (const Lane* lane : *direction)
                if (!lane->link) return false;
        const bool from_here = wired.edge.from == self_;
        if (wired.edge.pattern == Pattern::Ring) {
            (from_here ? out.to_next : out.from_prev) = links(wired.forward);
            continue;
        }
        const std::size_t tree = wired.edge.pattern == Pattern::Tree1 ? 1 : 0;
        if (from_here) {
            out.trees[tree].to_parent = links(wired.forward);
            out.trees[tree].from_parent = links(wired.backward);
        } else if (const std::size_t child = children[tree]++; child < 2) {
            out.trees[tree].from_child[child] = links(wired.forward);
            out.trees[tree].to_child[child] = links(wired.backward);
        }
    }
    return true;
}

}  // namespace rdmatune::fabric
