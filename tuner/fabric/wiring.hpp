// Makes the data links of an agent: addresses over the control connections, then all at once.
#pragma once

#include <memory>
#include <set>
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

/// Which of the controller's commands lanes are connected for: what a late agent says about an
/// earlier one is not mistaken for its answer to this one.
struct WiringOrder {
    int id = 0;
    std::string cookie;
    Deadline deadline;
};

/// Connects all lanes by the deadline; what fails is said lane by lane. No lane waits for another
/// agent's other lanes, so one dead or slow agent costs only the lanes to itself.
void connectLanes(Mesh& mesh, Transport& transport, std::vector<Lane>& lanes,
                  const WiringOrder& order);

/// Tells the peers that this end will connect nothing for this order, so that they do not wait.
void declineLanes(Mesh& mesh, const std::set<int>& peers, const WiringOrder& order);

}  // namespace rdmatune::fabric
