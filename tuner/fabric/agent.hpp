// One node's side of a measurement: introduces itself, then does what the controller says.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuner/fabric/phases.hpp"
#include "tuner/fabric/wire.hpp"

namespace rdmatune::fabric {

/// What the controller wants the links to be.
struct TransportChoice {
    bool verbs = false;
    std::string agreement;     ///< Agreement::str(), for verbs
    std::string bind_address;  ///< own address that peers reach, for TCP
    bool gpu_memory = false;
};

struct AgentSetup {
    int number = 0;
    int input = 0;          ///< the controller's lines
    int output = 1;         ///< own lines
    bool loopback = false;  ///< agents are on one machine: offer loopback addresses
    std::string host;       ///< name in messages
    std::string leaf;
    std::chrono::milliseconds lifetime{
        15000};  ///< an agent whose controller is lost ends by itself
    /// Bounded in time by itself.
    std::function<NodeFacts()> read_facts;
    std::function<Result<std::unique_ptr<Transport>>(const TransportChoice&, const NodeFacts&,
                                                     std::vector<std::string>& notes)>
        make_transport;
};

/// Runs until the controller says "end", closes its side, or `lifetime` has passed. An error is one
/// that kept the agent from taking part at all; it has been told to the controller where possible.
[[nodiscard]] Status runAgent(const AgentSetup& setup);

}  // namespace rdmatune::fabric
