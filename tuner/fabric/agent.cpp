#include "tuner/fabric/agent.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <thread>

#include "tuner/base/text.hpp"
#include "tuner/base/version.hpp"
#include "tuner/fabric/commands.hpp"
#include "tuner/fabric/lines.hpp"

namespace rdmatune::fabric {
namespace {

/// Agents that share this value share one machine's cores.
std::int64_t machineNumber() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    file >> id;
    std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a
    for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    return static_cast<std::int64_t>(hash >> 2);
}

class Agent {
  public:
    explicit Agent(const AgentSetup& setup)
        : setup_(setup), reader_(setup.input), end_(Clock::now() + setup.lifetime) {}

    Status run() {
        std::uint16_t port = 0;
        Result<Fd> listener = listenOn("", port);
        if (!listener) return failed(listener.error().message);
        listener_ = std::move(*listener);
        facts_ = setup_.read_facts();
        if (!say(introduction(port))) return Error{"the controller is gone"};
        std::map<int, std::vector<Endpoint>> table;
        while (const auto line = reader_.next(end_)) {
            const auto received = Clock::now();
            const auto message = Message::parse(*line);
            if (!message || message->number() != kEverybody) continue;
            const std::string& kind = message->kind();
            if (kind == "end") return Done{};
            if (kind == "at")
                readTable(*message, table);
            else if (kind == "setup")
                connect(readSetup(*message), table, received);
            else if (kind == "go")
                measure(readTempo(*message), received);
            else if (kind == "retest")
                retest(*message, received);
            else if (kind == "collect")
                collect(*message, received);
        }
        return reader_.ended() ? Status(Done{}) : Error{"no word from the controller in time"};
    }

  private:
    bool say(const std::string& text) { return writeText(setup_.output, text, end_); }
    bool say(const Message& message) { return say(message.line()); }
    [[nodiscard]] Message message(const std::string& kind) const { return {setup_.number, kind}; }
    void note(const std::string& text) {
        (void)say(message("note").add("text", text.substr(0, 600)));
    }

    Error failed(const std::string& why) {
        (void)say(message("failed").add("why", why.substr(0, 600)));
        return Error{why};
    }

    std::string introduction(std::uint16_t port) {
        Hello hello;
        hello.number = setup_.number;
        hello.wire = kWireVersion;
        hello.version = kVersion;
        hello.host = setup_.host;
        hello.leaf = setup_.leaf;
        hello.machine = machineNumber();
        hello.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
        for (const std::string& address : ownAddresses(setup_.loopback, setup_.host))
            hello.endpoints.push_back({address, port});
        hello.facts = facts_;
        return helloLines(hello);
    }

    void connect(const SetupCommand& command, const std::map<int, std::vector<Endpoint>>& table,
                 Clock::time_point received) {
        phases_.reset();
        const auto own = table.find(setup_.number);
        if (own == table.end()) return;  // left out: this agent came too late or cannot be used
        // Positions are places in the table, which all agents have alike.
        self_ = static_cast<int>(std::distance(table.begin(), own));
        nodes_ = static_cast<int>(table.size());
        if (!mesh_) {
            std::map<int, std::vector<Endpoint>> by_position;
            for (const auto& [number, endpoints] : table)
                by_position[static_cast<int>(by_position.size())] = endpoints;
            mesh_.emplace(std::move(listener_), self_, command.cookie, std::move(by_position));
        }
        const Deadline deadline = received + command.time;
        // A first connection shows which of this node's addresses leads to the others.
        std::set<int> neighbours;
        for (const Edge& edge : edgesOfNode(self_, nodes_))
            neighbours.insert(edge.from == self_ ? edge.to : edge.from);
        std::map<int, std::string> lost = mesh_->connect(neighbours, deadline);
        TransportChoice choice{command.verbs, command.agreement, {}, command.gpu_memory};
        for (const int peer : neighbours)
            if (choice.bind_address.empty()) choice.bind_address = mesh_->ownAddressTowards(peer);
        std::vector<std::string> notes;
        Result<std::unique_ptr<Transport>> transport = setup_.make_transport(choice, facts_, notes);
        for (const std::string& text : notes) note(text);
        for (const auto& [peer, why] : lost)
            (void)say(message("lost").add("peer", peer).add("why", why));
        if (!transport) {
            declineLanes(*mesh_, neighbours, {command.id, command.cookie, deadline});
            (void)say(
                message("ready").add("ok", 0).add("why", transport.error().message.substr(0, 600)));
            return;
        }
        phases_ =
            std::make_unique<Phases>(*mesh_, std::move(*transport), command.cookie, self_, nodes_);
        phases_->connect(command.id, deadline);
        Transport& used = phases_->transport();
        Message ready = message("ready");
        ready.add("ok", 1).add("transport", static_cast<int>(used.kind()));
        ready.add("gdr", static_cast<int>(used.gdr())).add("rails", used.rails());
        (void)say(ready.add("nominal", used.railNominalGbs(0) * 1e3).add("rail", used.railName(0)));
    }

    void measure(const Tempo& tempo, Clock::time_point received) {
        if (phases_)
            for (const EdgeResult& result : phases_->run(received, tempo))
                (void)say(edgeMessage(setup_.number, result));
        (void)say(message("done"));
    }

    void retest(const Message& command, Clock::time_point received) {
        const auto connect_time = std::chrono::milliseconds(command.integer("connect"));
        if (phases_)
            for (const PairResult& result : phases_->retest(
                     static_cast<int>(command.integer("id")), readPairs(command, nodes_),
                     received + connect_time, readTempo(command)))
                (void)say(pairMessage(setup_.number, result));
        (void)say(message("done"));
    }

    void collect(const Message& command, Clock::time_point received) {
        const CollectCommand what = readCollect(command);
        CollectiveLinks links;
        if (!phases_ || !phases_->collectiveLinks(links)) {
            (void)say(message("done").add("error", "a link that the collectives need is missing"));
            return;
        }
        const auto times = runCollectives(links, what.sizes, received + what.time);
        if (times)
            for (const CollectiveTime& time : *times) {
                Message line = message("collective");
                line.add("bytes", static_cast<std::int64_t>(time.bytes)).add("ring", time.ring_us);
                (void)say(line.add("tree", time.tree_us).add("runs", time.runs));
            }
        (void)say(message("done").add(
            "error", times ? std::string() : times.error().message.substr(0, 600)));
    }

    const AgentSetup& setup_;
    LineReader reader_;
    Deadline end_;
    Fd listener_;
    NodeFacts facts_;
    std::optional<Mesh> mesh_;
    std::unique_ptr<Phases> phases_;
    int self_ = 0;
    int nodes_ = 0;
};

}  // namespace

Status runAgent(const AgentSetup& setup) {
    return Agent(setup).run();
}

}  // namespace rdmatune::fabric
