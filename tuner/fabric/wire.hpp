// What controller and agents tell each other over standard input and output: one line per message,
// "rt1 NUMBER KIND key=value ...". Lines of others in between (a prolog's greeting) are no
// messages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/fabric/schedule.hpp"
#include "tuner/fabric/socket.hpp"
#include "tuner/fabric/transport.hpp"

namespace rdmatune::fabric {

/// Raised whenever lines, greetings or frames change; agents of another one are refused.
inline constexpr int kWireVersion = 1;
/// srun passes on a line whole only up to 1024 bytes; a longer one may be torn apart.
inline constexpr std::size_t kLineMax = 960;

/// Words of one line. Values are percent-encoded where they hold blanks, '%' or control characters.
class Message {
  public:
    Message(int number, std::string kind) : number_(number), kind_(std::move(kind)) {}

    Message& add(const std::string& key, std::string_view value);
    Message& add(const std::string& key, const char* value) {
        return add(key, std::string_view(value));
    }
    Message& add(const std::string& key, std::int64_t value) {
        return add(key, std::to_string(value));
    }
    Message& add(const std::string& key, int value) { return add(key, std::to_string(value)); }
    /// Three decimals: nanoseconds of a microsecond, kilobytes of a megabyte.
    Message& add(const std::string& key, double value);

    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] const std::string& kind() const { return kind_; }
    [[nodiscard]] const std::map<std::string, std::string>& values() const { return values_; }
    [[nodiscard]] std::string text(const std::string& key) const;  ///< empty when absent
    [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t fallback = 0) const;
    /// Never negative, never infinite: such text counts as absent.
    [[nodiscard]] double real(const std::string& key, double fallback = 0) const;

    /// With the line end.
    [[nodiscard]] std::string line() const;
    /// Nothing for a line that is not a message.
    [[nodiscard]] static std::optional<Message> parse(std::string_view line);

  private:
    int number_;
    std::string kind_;
    std::map<std::string, std::string> values_;
};

/// The controller's number in its messages, which go to all agents alike.
inline constexpr int kEverybody = -1;

/// One HCA port as the agreement sees it.
struct HcaFact {
    std::string label;
    std::string layer;   ///< "InfiniBand", "Ethernet", "?"
    std::string subnet;  ///< empty: not known
    double rate_gbps = 0;
    bool operator==(const HcaFact&) const = default;
};

/// What one node has, and why it could not be read if it could not.
struct NodeFacts {
    int gpus = 0;
    std::vector<HcaFact> hcas;  ///< the usable ones, in rail order
    std::string error;
    bool operator==(const NodeFacts&) const = default;
};

/// An agent's introduction.
struct Hello {
    int number = -1;
    int wire = 0;
    std::string version;
    std::string host;
    std::string leaf;          ///< leaf switch, from SLURM_TOPOLOGY_ADDR; empty: not known
    std::int64_t machine = 0;  ///< agents with the same value share one machine's cores
    int cores = 1;
    std::vector<Endpoint> endpoints;
    NodeFacts facts;
    bool operator==(const Hello&) const = default;
};

/// The HCAs' lines first, then the "hello" line.
[[nodiscard]] std::string helloLines(const Hello& hello);
/// Collects an agent's lines; true once its "hello" line has come.
[[nodiscard]] bool readHello(const Message& message, Hello& hello);

/// One edge as its sending end measured it. Positions are places in the schedule.
struct EdgeResult {
    Edge edge;
    bool down = false;  ///< tree: data from `edge.to` (the parent) to `edge.from`
    std::string error;  ///< why a figure is missing; empty: none is
    std::optional<Latency> latency;
    double gbs = 0;             ///< all rails at once, under the pattern's load; 0: not measured
    double rail_gbs = 0;        ///< first rail alone (ring only); 0: not measured
    std::vector<double> rails;  ///< `gbs` rail by rail
};
[[nodiscard]] Message edgeMessage(int number, const EdgeResult& result);
[[nodiscard]] std::optional<EdgeResult> readEdge(const Message& message, int nodes);

/// One retest: `from` measures with `to`.
struct PairResult {
    int id = 0;
    int from = 0;
    int to = 0;
    std::optional<Latency> latency;
    double gbs = 0;
    std::string error;
};
[[nodiscard]] Message pairMessage(int number, const PairResult& result);
[[nodiscard]] std::optional<PairResult> readPair(const Message& message, int nodes);

}  // namespace rdmatune::fabric
