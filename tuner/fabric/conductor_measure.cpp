#include <cmath>

#include "tuner/fabric/agree.hpp"
#include "tuner/fabric/commands.hpp"
#include "tuner/fabric/conductor_steps.hpp"
#include "tuner/fabric/statistics.hpp"

namespace rdmatune::fabric {
namespace {

using std::chrono::milliseconds;

/// Of what is left of the budget when the agents are connected; the rest is for retests.
constexpr double kMeasureShare = 0.55;

void scale(Tempo& tempo, double share) {
    const auto scaled = [share](milliseconds time, long least) {
        if (time.count() == 0) return time;
        return milliseconds(
            std::max(least, std::lround(static_cast<double>(time.count()) * share)));
    };
    tempo.latency = scaled(tempo.latency, 1);
    tempo.bandwidth = scaled(tempo.bandwidth, 2);
}

/// Takes from a later pass what an earlier one did not have.
void fillIn(std::vector<EdgeResult>& edges, EdgeResult fresh) {
    for (EdgeResult& known : edges) {
        if (known.edge != fresh.edge || known.down != fresh.down) continue;
        const int had = known.latency ? known.latency->samples : 0;
        if (fresh.latency && fresh.latency->samples > had) known.latency = fresh.latency;
        if (known.gbs <= 0) {
            known.gbs = fresh.gbs;
            known.rails = fresh.rails;
        }
        if (known.rail_gbs <= 0) known.rail_gbs = fresh.rail_gbs;
        const bool whole = known.gbs > 0 && (known.down || known.latency);
        known.error = whole ? std::string() : fresh.error;
        return;
    }
    edges.push_back(std::move(fresh));
}

}  // namespace

Tempo Conductor::tempoFor(Clock::duration available) const {
    Tempo tempo;
    if (kind_ != ProfileTransport::Tcp) {
        tempo.latency = milliseconds(6);
        tempo.bandwidth = milliseconds(40);
        tempo.rounds = 1000;
    }
    tempo.latency = toMilliseconds(patiently(tempo.latency));
    tempo.bandwidth = toMilliseconds(patiently(tempo.bandwidth));
    // Agents that share a machine's cores need more time for the same number of messages.
    std::map<std::int64_t, int> on_machine;
    double crowd = 1;
    for (const Hello& hello : out_.members)
        crowd = std::max(crowd, 0.5 * ++on_machine[hello.machine] / std::max(1, hello.cores));
    tempo.latency = milliseconds(std::lround(static_cast<double>(tempo.latency.count()) * crowd));
    tempo.bandwidth = milliseconds(
        std::lround(static_cast<double>(tempo.bandwidth.count()) * std::min(crowd, 4.0)));
    const Programme programme = programmeFor(static_cast<int>(out_.members.size()), rails_);
    const double share =
        static_cast<double>(available.count()) /
        static_cast<double>(
            std::chrono::duration_cast<Clock::duration>(programme.length(tempo)).count());
    if (share < 1) scale(tempo, share);
    return tempo;
}

void Conductor::measure() {
    const int nodes = static_cast<int>(out_.members.size());
    const Tempo usual =
        tempoFor(std::chrono::duration_cast<Clock::duration>(left() * kMeasureShare));
    Tempo tempo = usual;
    // A network too slow for these slots (a long way, a crowded machine) gets more chances, each
    // with wider slots, for what is still missing.
    constexpr int kMostPasses = 4;
    for (int pass = 0; pass < kMostPasses; ++pass) {
        go(tempo, out_.edges);
        const Missing open = missing();
        if (open.latencies == 0 && open.bandwidths == 0) break;
        const Tempo last = tempo;
        tempo = usual;
        tempo.latency *= open.latencies > 0 ? 4 << 2 * pass : 0;
        tempo.bandwidth *= open.bandwidths > 0 ? 4 << 2 * pass : 0;
        const auto length = programmeFor(nodes, rails_).length(tempo);
        const double share = static_cast<double>(toMilliseconds(left() * kMeasureShare).count()) /
                             static_cast<double>(length.count());
        scale(tempo, std::min(share, 1.0));
        if (tempo.latency < last.latency * 2 && tempo.bandwidth < last.bandwidth * 2) break;
    }
    endPhase("patterns");
}

/// One pass of the patterns; figures that were missing so far are filled in.
void Conductor::go(const Tempo& tempo, std::vector<EdgeResult>& into) {
    const int nodes = static_cast<int>(out_.members.size());
    const auto length = programmeFor(nodes, rails_).length(tempo);
    Message command(kEverybody, "go");
    crew_.broadcast(addTempo(command, tempo).line(), end_);
    const std::set<int> answered =
        gather("done", Clock::now() + length + answerTime(), [&](const Message& message) {
            if (message.kind() != "edge") return;
            if (auto edge = readEdge(message, nodes)) fillIn(into, std::move(*edge));
        });
    noteSilent(answered, "stopped answering while measuring");
}

Missing Conductor::missing() const {
    Missing out;
    const auto here = [&](int position) { return present_[static_cast<std::size_t>(position)]; };
    std::vector<double> samples;
    for (const EdgeResult& edge : out_.edges) {
        if (!here(edge.edge.from) || !here(edge.edge.to)) continue;
        if (!edge.down && !edge.latency) ++out.latencies;
        if (edge.gbs <= 0) ++out.bandwidths;
        if (edge.latency) samples.push_back(edge.latency->samples);
    }
    constexpr double kFewSamples = 8;
    if (!samples.empty() && median(samples) < kFewSamples)
        out.latencies += static_cast<int>(samples.size());
    return out;
}

Thresholds Conductor::limits() const {
    std::set<std::int64_t> machines;
    for (const Hello& hello : out_.members) machines.insert(hello.machine);
    return thresholdsFor(kind_ == ProfileTransport::Tcp, machines.size() < out_.members.size(),
                         assignment_.latency_factor, assignment_.bandwidth_fraction);
}

/// What is slow for a moment only is no slow rail, so the streams run once more.
void Conductor::checkRails() {
    const int nodes = static_cast<int>(out_.members.size());
    const std::vector<SlowRail> found = findSlowRails(out_.edges, nodes, limits());
    if (found.empty()) return;
    Tempo tempo = tempoFor(seconds(3600));
    tempo.latency = milliseconds(0);
    if (programmeFor(nodes, rails_).length(tempo) + patiently(milliseconds(300)) > left()) {
        out_.notes.push_back("no time was left to look again at what seemed slow: " +
                             describe(found.front(), out_.members, out_.agreement));
        return;
    }
    std::vector<EdgeResult> again;
    go(tempo, again);
    out_.slow_rails = slowInBoth(found, findSlowRails(again, nodes, limits()));
    endPhase("rails");
}

void Conductor::retest() {
    const Thresholds limits = this->limits();
    const std::vector<Suspect> suspects = findSuspects(out_.edges, limits);
    if (suspects.empty()) return;
    const std::vector<PairTest> pairs = planRetests(suspects, present_);
    if (pairs.empty()) return;
    int slots = 0;
    for (const PairTest& pair : pairs) slots = std::max(slots, pair.slot + 1);
    Tempo tempo = tempoFor(Clock::duration::max() / 4);
    // Slow edges are expected here: they need time for enough round trips.
    tempo.latency *= 2;
    const auto connect_time =
        std::clamp(toMilliseconds(left() / 5), milliseconds(20), milliseconds(200));
    const auto length = connect_time + slots * (tempo.latency + tempo.bandwidth);
    if (length + patiently(milliseconds(300)) > left()) {
        out_.notes.push_back("no time was left to test again what looked slow: " +
                             out_.members[static_cast<std::size_t>(suspects[0].from)].host +
                             " with " +
                             out_.members[static_cast<std::size_t>(suspects[0].to)].host);
        return;
    }
    Message command(kEverybody, "retest");
    command.add("id", ++connecting_).add("connect", connect_time.count());
    addPairs(addTempo(command, tempo), pairs);
    crew_.broadcast(command.line(), end_);
    const int nodes = static_cast<int>(out_.members.size());
    const std::set<int> answered =
        gather("done", Clock::now() + length + answerTime(), [&](const Message& message) {
            if (message.kind() != "pair") return;
            if (auto pair = readPair(message, nodes)) out_.retests.push_back(std::move(*pair));
        });
    noteSilent(answered, "stopped answering while testing again");
    out_.verdicts = judge(suspects, out_.retests, limits);
    endPhase("retests");
}

void Conductor::collect() {
    if (assignment_.collective_sizes.empty()) return;
    CollectCommand command;
    command.sizes = assignment_.collective_sizes;
    command.time = toMilliseconds(left() * 0.8);
    if (command.time < milliseconds(50)) {
        out_.notes.emplace_back("no time was left for the collectives; give a larger --budget");
        return;
    }
    crew_.broadcast(collectMessage(command).line(), end_);
    std::map<std::string, std::vector<std::string>> errors;
    gather("done", Clock::now() + command.time + answerTime(), [&](const Message& message) {
        if (message.kind() == "done" && !message.text("error").empty())
            errors[message.text("error")].push_back(hostOf(message.number()));
        if (message.kind() != "collective") return;
        CollectiveTime time;
        time.bytes = static_cast<std::size_t>(std::max<std::int64_t>(0, message.integer("bytes")));
        time.ring_us = message.real("ring");
        time.tree_us = message.real("tree");
        time.runs = static_cast<int>(std::clamp<std::int64_t>(message.integer("runs"), 0, 1 << 20));
        out_.collectives.push_back({positionOf(message.number()), time});
    });
    for (const auto& [why, hosts] : errors)
        out_.notes.push_back("collectives: " + nameNodes(hosts) + ": " + why);
    endPhase("collectives");
}

}  // namespace rdmatune::fabric
