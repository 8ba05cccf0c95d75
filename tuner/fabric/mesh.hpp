// An agent's control connections to the agents it measures with.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tuner/fabric/handshake.hpp"
#include "tuner/fabric/socket.hpp"

namespace rdmatune::fabric {

/// Connections between positions of the schedule. Of two agents the lower position connects. Used
/// by one thread.
class Mesh {
  public:
    Mesh(Fd listener, int self, std::string cookie, std::map<int, std::vector<Endpoint>> table)
        : listener_(std::move(listener)),
          self_(self),
          cookie_(std::move(cookie)),
          table_(std::move(table)) {}

    /// Connects to all `peers` at once that are not connected yet. Every connection without the
    /// cookie is refused and logged. Gives those that could not be had by the deadline, with the
    /// reason.
    [[nodiscard]] std::map<int, std::string> connect(const std::set<int>& peers, Deadline deadline);

    /// One line to or from a connected peer. A connection that broke is forgotten; one whose peer
    /// is merely late is not.
    [[nodiscard]] Status sendLine(int peer, std::string_view line, Deadline deadline);
    [[nodiscard]] Result<std::string> receiveLine(int peer, Deadline deadline);

    [[nodiscard]] bool connected(int peer) const { return peers_.contains(peer); }
    /// Own address on the connection to a peer: the way that is known to work.
    [[nodiscard]] std::string ownAddressTowards(int peer) const;

  private:
    struct Outgoing;
    struct Incoming;
    void startNext(Outgoing& out);
    void advance(Outgoing& out, short events);
    void accept(std::vector<Incoming>& incoming);
    bool advance(Incoming& in);
    void adopt(int peer, Fd fd);

    Fd listener_;
    int self_;
    std::string cookie_;
    std::map<int, std::vector<Endpoint>> table_;
    std::map<int, Fd> peers_;
    std::map<int, std::string> begun_;  ///< what came after the last whole line
};

}  // namespace rdmatune::fabric
