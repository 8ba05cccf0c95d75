// How the rendezvous grows with the job: bytes from the program's own messages, times from
// constants measured where this runs and on a local Slurm cluster, beside pairwise rounds.
//   scale_bench [SRUN_BASE_MS SRUN_NODE_MS SRUN_MB_S]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tuner/fabric/commands.hpp"
#include "tuner/fabric/phases.hpp"
#include "tuner/fabric/sample.hpp"
#include "tuner/fabric/wire.hpp"

namespace rdmatune::fabric {
namespace {

/// What srun costs, measured with Slurm 22.05 on local clusters of 2 to 16 nodes. The nodes there
/// share two cores, so what one srun must do by itself is taken from its own CPU time, user and
/// system: 17 ms for 2 nodes, 27 ms for 16; 56 ms more to send 0.5 MB to each of 16.
struct Constants {
    /// A nested srun, slurmstepd, the agent and the reading of its node, all nodes side by side.
    double srun_base_ms = 100;
    double srun_node_ms = 0.7;   ///< more for each further node
    double srun_mb_per_s = 130;  ///< standard input sent to all nodes, and output collected
};

Hello typicalHello(int number) {
    Hello hello;
    hello.number = number;
    hello.wire = kWireVersion;
    hello.version = "1.0.0";
    hello.host = "gpu" + std::to_string(10000 + number);
    hello.machine = 1234567890123456789 + number;
    hello.cores = 128;
    hello.endpoints = {
        {"10." + std::to_string(number / 62500 % 250) + "." + std::to_string(number / 250 % 250) +
             "." + std::to_string(number % 250 + 1),
         45678},
        {"172.16." + std::to_string(number / 250 % 250) + "." + std::to_string(number % 250 + 1),
         45678}};
    hello.facts.gpus = 8;
    for (int i = 0; i < 8; ++i)
        hello.facts.hcas.push_back(
            {"mlx5_" + std::to_string(i), "InfiniBand", "fe800000:00000000", 400});
    return hello;
}

std::size_t resultBytes(int nodes) {
    // All nodes differ by a few digits at most: a few of them stand for all.
    std::size_t bytes = 0;
    constexpr int kLooked = 8;
    for (int i = 0; i < kLooked; ++i) {
        const int node = static_cast<int>(static_cast<long>(i) * nodes / kLooked);
        for (const Edge& edge : edgesOfNode(node, nodes)) {
            const bool tree = edge.pattern != Pattern::Ring;
            if (edge.from != node && !tree) continue;
            EdgeResult result{edge,
                              edge.from != node,
                              {},
                              Latency{1.234, 1.456, 3.789, 1000},
                              190.123,
                              24.012,
                              std::vector<double>(8, 23.9)};
            if (result.down) result.latency.reset();
            bytes += edgeMessage(node, result).line().size();
        }
    }
    return bytes / kLooked * static_cast<std::size_t>(nodes);
}

/// Seconds the controller needs to read the introductions of so many nodes.
double secondsToRead(int nodes) {
    const std::string lines = helloLines(typicalHello(1234));
    const int repeats = std::min(nodes, 500);
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) {
        Hello hello;
        std::size_t begin = 0;
        while (begin < lines.size()) {
            const auto end = lines.find('\n', begin);
            if (const auto message =
                    Message::parse(std::string_view(lines).substr(begin, end - begin)))
                (void)readHello(*message, hello);
            begin = end + 1;
        }
    }
    return std::chrono::duration<double>(Clock::now() - start).count() * nodes / repeats;
}

void row(int job, int measured, const Constants& c) {
    std::size_t hello = 0;
    std::map<int, std::vector<Endpoint>> table;
    for (int number = 0; number < measured; ++number) {
        const Hello one = typicalHello(number);
        hello += helloLines(one).size();
        table[number] = one.endpoints;
    }
    const double table_bytes = static_cast<double>(tableLines(table).size());
    const double results = static_cast<double>(resultBytes(measured));
    const double start_s = (c.srun_base_ms + c.srun_node_ms * (measured - 2)) / 1e3 +
                           secondsToRead(measured) +
                           static_cast<double>(hello) / (c.srun_mb_per_s * 1e6);
    const double table_s = table_bytes * measured / (c.srun_mb_per_s * 1e6);
    const double results_s = results / (c.srun_mb_per_s * 1e6);
    const Tempo tempo{std::chrono::milliseconds(6), std::chrono::milliseconds(40), 1000, 1 << 20};
    const Programme programme = programmeFor(measured, 8);
    const double slots_s = std::chrono::duration<double>(programme.length(tempo)).count();
    const double total = start_s + table_s + slots_s + results_s;
    const double pairwise_s =
        (job - 1) * std::chrono::duration<double>(tempo.latency + tempo.bandwidth).count();
    std::printf("%7d %8d %10.1f %10.1f %11.1f %11.1f %7d %8.2f %8.2f %8.2f %8.2f %9d %10.1f\n", job,
                measured, static_cast<double>(hello) / 1e3, table_bytes / 1e3,
                table_bytes * measured / 1e6, results / 1e6,
                programme.latency_slots + programme.bandwidth_slots, start_s, table_s,
                slots_s + results_s, total, job - 1, pairwise_s);
}

int run(int argc, char** argv) {
    Constants c;
    if (argc == 4) c = {std::atof(argv[1]), std::atof(argv[2]), std::atof(argv[3])};
    std::printf(
        "simulated, 8 rails: srun %.0f ms + %.1f ms for each node beyond two, %.0f MB/s through "
        "its standard streams\n",
        c.srun_base_ms, c.srun_node_ms, c.srun_mb_per_s);
    std::printf("%7s %8s %10s %10s %11s %11s %7s %8s %8s %8s %8s %9s %10s\n", "nodes", "measured",
                "hello kB", "table kB", "sent MB", "results MB", "rounds", "start s", "table s",
                "slots s", "total s", "pairwise", "pairwise s");
    constexpr int kSample = 256;
    for (const int nodes : {2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 2000, 5000, 10000})
        row(nodes, std::min(nodes, kSample), c);
    std::printf("without a sample:\n");
    for (const int nodes : {512, 1000, 2000, 5000, 10000}) row(nodes, nodes, c);
    std::printf(
        "\"pairwise\" is the number of rounds in which n nodes meet in pairs, n - 1, as ClusterKit "
        "does it, and\n"
        "their time with one slot of latency and one of bandwidth each.\n");
    return 0;
}

}  // namespace
}  // namespace rdmatune::fabric

int main(int argc, char** argv) {
    return rdmatune::fabric::run(argc, argv);
}
