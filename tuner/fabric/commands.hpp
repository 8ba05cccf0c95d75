// What the controller tells all agents at once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner/fabric/phases.hpp"
#include "tuner/fabric/wire.hpp"

namespace rdmatune::fabric {

/// "Connect": the secret, what to connect over, and how long it may take.
struct SetupCommand {
    int id = 0;  ///< counts the controller's commands that connect agents
    std::string cookie;
    bool verbs = false;
    std::string agreement;
    bool gpu_memory = false;
    std::chrono::milliseconds time{1500};
};
[[nodiscard]] Message setupMessage(const SetupCommand& command);
[[nodiscard]] SetupCommand readSetup(const Message& message);

/// Where the agents listen, number by number, over as many lines as it takes.
[[nodiscard]] std::string tableLines(const std::map<int, std::vector<Endpoint>>& table);
void readTable(const Message& message, std::map<int, std::vector<Endpoint>>& table);

/// Adds the tempo's fields to a command.
Message& addTempo(Message& message, const Tempo& tempo);
[[nodiscard]] Tempo readTempo(const Message& message);

Message& addPairs(Message& message, const std::vector<PairTest>& pairs);
/// Pairs of positions below `nodes`; malformed ones are left out.
[[nodiscard]] std::vector<PairTest> readPairs(const Message& message, int nodes);

/// "Run the allreduces."
struct CollectCommand {
    std::vector<std::size_t> sizes;
    std::chrono::milliseconds time{1000};
};
[[nodiscard]] Message collectMessage(const CollectCommand& command);
[[nodiscard]] CollectCommand readCollect(const Message& message);

}  // namespace rdmatune::fabric
