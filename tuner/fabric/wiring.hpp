// Makes the data links of an agent: addresses over the control connections, then all at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tuner/fabric/mesh.hpp"
#include "tuner/fabric/transport.hpp"

namespace rdmatune::fabric {

/// One link that is wanted. Both ends list what they share with each other in the same order.
struct Lane {
    int peer = 0;
    bool active = false;  ///< this end connects
    int rail = 0;
    std::unique_ptr<Link> link;  ///< null: could not be had, see `error`
    std::string error;
};

/// Connects all lanes by the deadline; what fails is said lane by lane. No lane waits for another
/// agent's other lanes, so one dead or slow agent costs only the lanes to itself.
void connectLanes(Mesh& mesh, Transport& transport, std::vector<Lane>& lanes,
                  const std::string& cookie, Deadline deadline);

}  // namespace rdmatune::fabric
