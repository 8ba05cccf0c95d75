// What an agent's own node has, read without risk to the measurement: hwloc or a driver may hang.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/config/options.hpp"
#include "tuner/fabric/agent.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune::fabric {

class NodeReader {
  public:
    NodeReader(Options options, std::string host)
        : options_(std::move(options)), host_(std::move(host)) {}

    /// Reads the node in a child process that is killed after `timeout`. A node that cannot be read
    /// has no HCAs, and `error` says why.
    [[nodiscard]] NodeFacts read(std::chrono::milliseconds timeout);

    /// Verbs over the rails that the agreement names, or TCP.
    [[nodiscard]] Result<std::unique_ptr<Transport>> transport(
        const TransportChoice& choice, std::vector<std::string>& notes) const;

  private:
    Options options_;
    std::string host_;
    std::optional<Node> node_;
};

}  // namespace rdmatune::fabric
