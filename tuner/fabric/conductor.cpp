#include "tuner/fabric/conductor.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "tuner/base/text.hpp"
#include "tuner/base/version.hpp"
#include "tuner/fabric/agree.hpp"
#include "tuner/fabric/assemble.hpp"
#include "tuner/fabric/commands.hpp"
#include "tuner/fabric/handshake.hpp"
#include "tuner/fabric/statistics.hpp"

namespace rdmatune::fabric {
namespace {

using std::chrono::milliseconds;

/// On top of what a step takes: the agents' answers must come back through the launcher.
constexpr auto kAnswerTime = milliseconds(250);
/// Shares of the budget. The introductions include starting the agents.
constexpr double kHelloShare = 0.5;
constexpr double kSetupShare = 0.35;    // of what is left then
constexpr double kMeasureShare = 0.55;  // of what is left then; the rest is for retests

template <class Duration>
milliseconds toMilliseconds(Duration time) {
    return std::chrono::duration_cast<milliseconds>(time);
}

class Conductor {
  public:
    Conductor(Crew& crew, const Assignment& assignment)
        : crew_(crew),
          assignment_(assignment),
          end_(assignment.start + seconds(assignment.budget_s)),
          mark_(assignment.start) {}

    Outcome run() {
        if (collectHellos() && setUp() && measure()) {
            retest();
            collect();
        }
        crew_.broadcast(Message(kEverybody, "end").line(), Clock::now() + milliseconds(100));
        assemble();
        return std::move(out_);
    }

  private:
    static Clock::duration seconds(double value) {
        return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
    }
    [[nodiscard]] Clock::duration left() const {
        return std::max(end_ - Clock::now(), Clock::duration::zero());
    }
    void endPhase(const std::string& name) {
        const auto now = Clock::now();
        out_.phases.push_back({name, std::chrono::duration<double>(now - mark_).count()});
        mark_ = now;
    }
    bool failed(const std::string& why) {
        out_.reason = why;
        return false;
    }
    [[nodiscard]] std::string nameOf(int number) const {
        const auto at = static_cast<std::size_t>(number);
        return number >= 0 && at < assignment_.names.size() ? assignment_.names[at]
                                                            : "agent " + std::to_string(number);
    }
    [[nodiscard]] int positionOf(int number) const {
        const auto at = position_.find(number);
        return at == position_.end() ? -1 : at->second;
    }
    [[nodiscard]] std::string hostOf(int number) const {
        const int position = positionOf(number);
        return position < 0 ? nameOf(number)
                            : out_.members[static_cast<std::size_t>(position)].host;
    }
    void takeNote(const Message& message) {
        const std::string text = hostOf(message.number()) + ": " + message.text("text");
        if (noted_.insert(text).second) out_.notes.push_back(text);
    }

    bool collectHellos();
    bool setUp();
    bool connect(bool verbs);
    bool measure();
    void retest();
    void collect();
    void assemble();
    void noteSilent(const std::set<int>& answered, const std::string& what);
    [[nodiscard]] Tempo tempoFor(Clock::duration available) const;
    [[nodiscard]] std::string launcherSaid() const;

    /// Takes messages until every member has said `last` or the deadline has come.
    template <class Handle>
    std::set<int> gather(const std::string& last, Deadline deadline, Handle handle) {
        std::set<int> answered;
        while (answered.size() < out_.members.size()) {
            const auto message = crew_.next(std::min(deadline, end_));
            if (!message) break;
            if (positionOf(message->number()) < 0) continue;
            if (message->kind() == "note")
                takeNote(*message);
            else
                handle(*message);
            if (message->kind() == last) answered.insert(message->number());
        }
        return answered;
    }

    Crew& crew_;
    const Assignment& assignment_;
    Deadline end_;
    Clock::time_point mark_;
    Outcome out_;
    std::map<int, int> position_;  ///< agent number -> place in the schedule
    std::map<int, std::vector<Endpoint>> table_;
    std::string cookie_;
    std::set<std::string> noted_;
    std::set<std::string> lost_;
    std::vector<bool> present_;  ///< by position: answered last
    ProfileTransport kind_ = ProfileTransport::Tcp;
    ProfileGdr gdr_ = ProfileGdr::NotTried;
    int rails_ = 1;
    std::vector<double> nominal_gbs_;
};

std::string Conductor::launcherSaid() const {
    // The last line is the launcher's own conclusion as a rule; an agent's own words are better.
    for (const std::string& line : crew_.complaints())
        if (const auto at = line.find("rdma-tune: "); at != std::string::npos)
            return line.substr(at + 11);
    for (auto line = crew_.complaints().rbegin(); line != crew_.complaints().rend(); ++line)
        if (!trim(*line).empty()) return std::string(trim(*line));
    return {};
}

bool Conductor::collectHellos() {
    std::map<int, Hello> hellos;
    std::set<int> complete;
    std::string failure;
    const Deadline deadline = assignment_.start + seconds(assignment_.budget_s * kHelloShare);
    while (static_cast<int>(complete.size()) < assignment_.agents) {
        const auto message = crew_.next(deadline);
        if (!message) break;
        const int number = message->number();
        if (number < 0 || number >= assignment_.agents) continue;
        if (message->kind() == "failed") failure = nameOf(number) + ": " + message->text("why");
        if (readHello(*message, hellos[number])) complete.insert(number);
    }
    std::vector<std::string> silent;
    std::vector<std::string> foreign;
    for (int number = 0; number < assignment_.agents; ++number) {
        if (!complete.contains(number)) {
            silent.push_back(nameOf(number));
            continue;
        }
        Hello& hello = hellos[number];
        if (hello.host.empty()) hello.host = nameOf(number);
        if (hello.wire != kWireVersion) {
            foreign.push_back(hello.host);
            continue;
        }
        position_[number] = static_cast<int>(out_.members.size());
        table_[number] = hello.endpoints;
        out_.members.push_back(std::move(hello));
    }
    endPhase("start");
    if (!foreign.empty())
        return failed(nameNodes(foreign) + ": another version of rdma-tune is installed than " +
                      std::string(kVersion) + " here; install the same version on all nodes");
    if (out_.members.size() < 2) {
        const std::string said = !failure.empty() ? failure : launcherSaid();
        std::string why = out_.members.empty() ? "no agent answered"
                                               : "only " + out_.members[0].host + " answered";
        if (!crew_.gone()) why += " in time";
        return failed(said.empty() ? why : why + " (" + said + ")");
    }
    if (!silent.empty())
        out_.notes.push_back("not measured: " + nameNodes(silent) + " did not answer in time");
    return true;
}

bool Conductor::setUp() {
    present_.assign(out_.members.size(), true);
    cookie_ = makeCookie();
    if (cookie_.empty()) return failed("the kernel gives no random numbers for the agents' secret");
    Agreed agreed = agree(out_.members);
    out_.agreement = agreed.agreement;
    out_.notes.insert(out_.notes.end(), agreed.notes.begin(), agreed.notes.end());
    crew_.broadcast(tableLines(table_), end_);
    const bool verbs = assignment_.verbs && out_.agreement.rails > 0;
    bool connected = connect(verbs);
    if (!connected && verbs && left() > seconds(assignment_.budget_s * 0.2)) {
        out_.notes.push_back("RDMA cannot be measured, so TCP is: " + out_.reason);
        out_.reason.clear();
        connected = connect(false);
    }
    endPhase("connect");
    return connected;
}

bool Conductor::connect(bool verbs) {
    SetupCommand command;
    command.cookie = cookie_;
    command.verbs = verbs;
    command.agreement = verbs ? out_.agreement.str() : std::string();
    command.gpu_memory = assignment_.gpu_memory;
    command.time =
        std::clamp(toMilliseconds(left() * kSetupShare), milliseconds(50), milliseconds(2000));
    crew_.broadcast(setupMessage(command).line(), end_);
    std::map<std::string, std::vector<std::string>> refused;
    nominal_gbs_.clear();
    rails_ = 1;
    const std::set<int> answered =
        gather("ready", Clock::now() + command.time + kAnswerTime, [&](const Message& message) {
            if (message.kind() == "lost") {
                const auto peer = message.integer("peer", -1);
                if (peer < 0 || peer >= static_cast<std::int64_t>(out_.members.size())) return;
                lost_.insert(hostOf(message.number()) + " cannot reach " +
                             out_.members[static_cast<std::size_t>(peer)].host + " (" +
                             message.text("why") + ")");
            }
            if (message.kind() != "ready") return;
            if (message.integer("ok") != 1) {
                refused[message.text("why")].push_back(hostOf(message.number()));
                return;
            }
            kind_ = static_cast<ProfileTransport>(
                std::clamp<std::int64_t>(message.integer("transport"), 0, 2));
            const auto gdr =
                static_cast<ProfileGdr>(std::clamp<std::int64_t>(message.integer("gdr"), 0, 3));
            // GPU memory counts only where every node measured on it, and by the same way.
            gdr_ = nominal_gbs_.empty() || gdr == gdr_ ? gdr : ProfileGdr::No;
            const auto rails = static_cast<int>(
                std::clamp<std::int64_t>(message.integer("rails", 1), 1, kProfileMaxRails));
            rails_ = nominal_gbs_.empty() ? rails : std::min(rails_, rails);
            nominal_gbs_.push_back(message.real("nominal") * 1e-3);
            if (positionOf(message.number()) == 0) out_.rail = message.text("rail");
        });
    noteSilent(answered, "did not connect in time");
    if (!refused.empty() && (verbs || refused.begin()->second.size() == out_.members.size())) {
        const auto& [why, hosts] = *refused.begin();
        return failed(nameNodes(hosts) + ": " + why);
    }
    for (const auto& [why, hosts] : refused)
        out_.notes.push_back(nameNodes(hosts) + " not measured: " + why);
    if (answered.size() < 2) return failed("the agents could not connect to each other in time");
    return true;
}

void Conductor::noteSilent(const std::set<int>& answered, const std::string& what) {
    std::vector<std::string> silent;
    for (const auto& [number, position] : position_) {
        const auto at = static_cast<std::size_t>(position);
        if (present_[at] && !answered.contains(number)) silent.push_back(out_.members[at].host);
        present_[at] = answered.contains(number);
    }
    if (silent.empty()) return;
    out_.notes.push_back(nameNodes(silent) + " " + what);
}

Tempo Conductor::tempoFor(Clock::duration available) const {
    Tempo tempo;
    if (kind_ != ProfileTransport::Tcp) {
        tempo.latency = milliseconds(6);
        tempo.bandwidth = milliseconds(40);
        tempo.rounds = 1000;
    }
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
    if (share < 1) {
        tempo.latency =
            std::max(milliseconds(1),
                     milliseconds(std::lround(static_cast<double>(tempo.latency.count()) * share)));
        tempo.bandwidth = std::max(
            milliseconds(2),
            milliseconds(std::lround(static_cast<double>(tempo.bandwidth.count()) * share)));
    }
    return tempo;
}

bool Conductor::measure() {
    const int nodes = static_cast<int>(out_.members.size());
    Tempo tempo = tempoFor(std::chrono::duration_cast<Clock::duration>(left() * kMeasureShare));
    // A network too slow for these slots (a long way, a crowded machine) gets one more, wider
    // chance.
    for (int attempt = 0; attempt < 2; ++attempt) {
        const auto length = programmeFor(nodes, rails_).length(tempo);
        Message go(kEverybody, "go");
        crew_.broadcast(addTempo(go, tempo).line(), end_);
        std::vector<EdgeResult> edges;
        const std::set<int> answered =
            gather("done", Clock::now() + length + kAnswerTime, [&](const Message& message) {
                if (message.kind() != "edge") return;
                if (auto edge = readEdge(message, nodes)) edges.push_back(std::move(*edge));
            });
        const Coverage coverage = coverageOf(edges, nodes);
        if (attempt == 0 || coverage.share >= coverageOf(out_.edges, nodes).share)
            out_.edges = std::move(edges);
        noteSilent(answered, "stopped answering while measuring");
        const bool all_there = answered.size() == out_.members.size();
        std::vector<double> samples;
        for (const EdgeResult& edge : out_.edges)
            if (edge.latency) samples.push_back(edge.latency->samples);
        constexpr double kFewSamples = 8;
        const bool thin = coverage.share < 0.8 || median(samples) < kFewSamples;
        if (!all_there || !thin) break;
        tempo.latency *= 4;
        tempo.bandwidth *= 3;
        if (programmeFor(nodes, rails_).length(tempo) + kAnswerTime > left() * kMeasureShare) break;
    }
    endPhase("patterns");
    return true;
}

void Conductor::retest() {
    const Thresholds limits = thresholdsFor(
        kind_ == ProfileTransport::Tcp, assignment_.latency_factor, assignment_.bandwidth_fraction);
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
    if (length + kAnswerTime > left()) {
        out_.notes.push_back("no time was left to test again what looked slow: " +
                             out_.members[static_cast<std::size_t>(suspects[0].from)].host +
                             " with " +
                             out_.members[static_cast<std::size_t>(suspects[0].to)].host);
        return;
    }
    Message command(kEverybody, "retest");
    command.add("connect", connect_time.count());
    addPairs(addTempo(command, tempo), pairs);
    crew_.broadcast(command.line(), end_);
    const int nodes = static_cast<int>(out_.members.size());
    const std::set<int> answered =
        gather("done", Clock::now() + length + kAnswerTime, [&](const Message& message) {
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
    gather("done", Clock::now() + command.time + kAnswerTime, [&](const Message& message) {
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

void Conductor::assemble() {
    constexpr std::size_t kMostLost = 4;
    std::size_t shown = 0;
    for (const std::string& text : lost_) {
        if (shown++ < kMostLost) out_.notes.push_back(text);
    }
    if (lost_.size() > kMostLost)
        out_.notes.push_back(std::to_string(lost_.size() - kMostLost) + " more connections failed");
    for (const std::string& line : crew_.complaints())
        if (const auto at = line.find("rdma-tune: ");
            at != std::string::npos && noted_.insert(line).second)
            out_.notes.push_back(line.substr(at + 11));
    if (!out_.reason.empty() || out_.members.size() < 2) return;

    const int nodes = static_cast<int>(out_.members.size());
    std::vector<std::string> hosts;
    for (const Hello& hello : out_.members) hosts.push_back(hello.host);
    FabricProfile& profile = out_.profile;
    profile.nodes = static_cast<std::uint32_t>(assignment_.step_nodes);
    profile.transport = kind_;
    profile.gdr = gdr_;
    profile.rails = static_cast<std::uint32_t>(rails_);
    profile.rail_nominal_mbps = static_cast<std::uint32_t>(std::lround(median(nominal_gbs_) * 1e3));
    addFigures(out_.edges, nodes, profile);
    const Coverage coverage = coverageOf(out_.edges, nodes);
    std::set<int> measured;
    for (const EdgeResult& edge : out_.edges)
        if (edge.latency || edge.gbs > 0) measured.insert({edge.edge.from, edge.edge.to});
    profile.nodes_measured = static_cast<std::uint32_t>(measured.size());
    profile.complete = coverage.edges_missing == 0 && nodes == assignment_.agents;
    for (const Verdict& verdict : out_.verdicts) {
        out_.notes.push_back(describe(verdict, hosts));
        if (verdict.kind != Verdict::Kind::Node || profile.slow_node[0] != '\0') continue;
        const std::string& host = hosts[static_cast<std::size_t>(verdict.node)];
        host.copy(profile.slow_node, std::min(host.size(), kProfileHostMax - 1));
    }
    assignment_.rules.copy(profile.rules, std::min(assignment_.rules.size(), kProfileRulesMax - 1));
    if (!coverage.usable) {
        std::string first;
        for (const EdgeResult& edge : out_.edges)
            if (first.empty() && !edge.error.empty()) first = edge.error;
        out_.reason = "too little could be measured: latency of " +
                      std::to_string(coverage.ring_latency) + " and bandwidth of " +
                      std::to_string(coverage.ring_bandwidth) + " of the ring's " +
                      std::to_string(nodes) + " edges" + (first.empty() ? "" : " (" + first + ")");
        return;
    }
    if (coverage.edges_missing > 0)
        out_.notes.push_back("incomplete: " + std::to_string(coverage.edges_missing) + " of " +
                             std::to_string(allEdges(nodes).size()) + " edges have no figure");
    out_.usable = true;
}

}  // namespace

Outcome conduct(Crew& crew, const Assignment& assignment) {
    return Conductor(crew, assignment).run();
}

}  // namespace rdmatune::fabric
