// One agent's measuring: its links along the patterns, and the slots of time in which it uses them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tuner/fabric/collective.hpp"
#include "tuner/fabric/schedule.hpp"
#include "tuner/fabric/wire.hpp"
#include "tuner/fabric/wiring.hpp"

namespace rdmatune::fabric {

/// How long each part takes and how much is sent; the controller's choice, the same for all agents.
struct Tempo {
    std::chrono::milliseconds latency{10};    ///< one round of ping-pongs; 0: none
    std::chrono::milliseconds bandwidth{50};  ///< one pattern's streams; 0: none
    int rounds = 200;                         ///< round trips of one ping-pong, at most
    std::size_t message_bytes = 1 << 20;
};

/// All slots of one `go` from the first to the last: their number does not depend on the job's
/// size.
struct Programme {
    int latency_slots = 0;    ///< rounds of all patterns
    int bandwidth_slots = 0;  ///< ring, tree, and the first rail alone where there are several
    [[nodiscard]] std::chrono::milliseconds length(const Tempo& tempo) const {
        return latency_slots * tempo.latency + bandwidth_slots * tempo.bandwidth;
    }
};
[[nodiscard]] Programme programmeFor(int nodes, int rails);

/// A retest that the controller asks for.
struct PairTest {
    int id = 0;
    int slot = 0;  ///< pairs of one slot run at once and share no node
    int from = 0;
    int to = 0;
};

class Phases {
  public:
    Phases(Mesh& mesh, std::unique_ptr<Transport> transport, std::string cookie, int self,
           int nodes)
        : mesh_(mesh),
          transport_(std::move(transport)),
          cookie_(std::move(cookie)),
          self_(self),
          nodes_(nodes) {}

    /// Connects the links of all patterns. `id`: of the controller's command, as in WiringOrder.
    void connect(int id, Deadline deadline);
    /// Runs the programme, slot by slot from `start` on. One result for each edge that this agent
    /// initiates, and one for each tree edge that it sends down.
    [[nodiscard]] std::vector<EdgeResult> run(Clock::time_point start, const Tempo& tempo);
    /// Connects the pairs by `start`, then measures them. Results of those that start here.
    [[nodiscard]] std::vector<PairResult> retest(int id, const std::vector<PairTest>& pairs,
                                                 Clock::time_point start, const Tempo& tempo);
    /// For the collectives; false when a link is missing.
    [[nodiscard]] bool collectiveLinks(CollectiveLinks& out);

    [[nodiscard]] Transport& transport() { return *transport_; }

  private:
    struct Wired {
        Edge edge;
        std::vector<Lane*> forward;   ///< from -> to, one for each rail
        std::vector<Lane*> backward;  ///< to -> from; trees only
    };
    struct Stream;

    [[nodiscard]] int peerOf(const Edge& edge) const {
        return edge.from == self_ ? edge.to : edge.from;
    }
    [[nodiscard]] EdgeResult& resultOf(std::vector<EdgeResult>& results, const Edge& edge,
                                       bool down) const;
    void pingPongs(std::vector<EdgeResult>& results, Pattern pattern, int round,
                   Clock::time_point start, const Tempo& tempo);
    [[nodiscard]] std::vector<Stream> streamsOf(bool trees, std::size_t rails);
    void runStreams(std::vector<Stream>& streams, Clock::time_point start,
                    const Tempo& tempo) const;
    [[nodiscard]] Result<Latency> pingPongRails(const std::vector<Lane*>& lanes, bool initiator,
                                                Clock::time_point start, const Tempo& tempo) const;

    Mesh& mesh_;
    std::unique_ptr<Transport> transport_;
    std::string cookie_;
    int self_;
    int nodes_;
    std::vector<Lane> lanes_;
    std::vector<Wired> wired_;
};

}  // namespace rdmatune::fabric
