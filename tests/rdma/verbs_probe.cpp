// Two ends of one verbs link in two processes of one machine: the fabric room's verbs by
// themselves, without agents and rendezvous, to be compared with perftest and to be hurt.
//
//   verbs_probe [--rounds N] [--runs N] [--stream SECONDS] [--bytes B] [--budget SECONDS]
//               [--wrong-cookie | --absent] DEVICE DEVICE
//
// Prints "latency MIN MEDIAN P99 SAMPLES" (one-way microseconds) for each run and "stream GBS",
// from the first device's end. Exit status 1 and the reason on stderr when an end fails.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/text.hpp"
#include "tuner/fabric/transport.hpp"

namespace {

using namespace rdmatune;
using namespace rdmatune::fabric;

struct Request {
    int rounds = 500;
    int runs = 1;
    double stream = 0;
    std::size_t bytes = 65536;
    double budget = 20;
    bool wrong_cookie = false;
    bool absent = false;
    std::vector<std::string> devices;
};

Request parse(int argc, char** argv) {
    Request out;
    for (int i = 1; i < argc; ++i) {
        const std::string_view name = argv[i];
        const auto value = [&]() -> std::string_view { return i + 1 < argc ? argv[++i] : ""; };
        if (name == "--rounds")
            out.rounds = parseInt<int>(value()).value_or(0);
        else if (name == "--runs")
            out.runs = parseInt<int>(value()).value_or(0);
        else if (name == "--stream")
            out.stream = parseReal(value()).value_or(0);
        else if (name == "--bytes")
            out.bytes = parseInt<std::size_t>(value()).value_or(0);
        else if (name == "--budget")
            out.budget = parseReal(value()).value_or(0);
        else if (name == "--wrong-cookie")
            out.wrong_cookie = true;
        else if (name == "--absent")
            out.absent = true;
        else
            out.devices.emplace_back(name);
    }
    return out;
}

int fail(const Error& error) {
    std::fprintf(stderr, "verbs_probe: %s\n", error.message.c_str());
    return 1;
}

/// The other end's address, in a record of fixed size over the socket pair.
std::string swapAddresses(int socket, const std::string& mine) {
    std::array<char, 129> record{};
    std::memcpy(record.data(), mine.data(), std::min(mine.size(), record.size() - 1));
    if (write(socket, record.data(), record.size()) != static_cast<ssize_t>(record.size()))
        return {};
    if (recv(socket, record.data(), record.size(), MSG_WAITALL) !=
        static_cast<ssize_t>(record.size()))
        return {};
    return record.data();
}

int runEnd(const Request& request, bool first, int socket) {
    const auto begin = Clock::now();
    const Deadline deadline = begin + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(request.budget));
    VerbsRequest wanted;
    wanted.rails.push_back(
        {.hca = request.devices[first ? 0 : 1], .port = 1, .gpu = -1, .gpu_pci = {}});
    std::vector<std::string> skipped;
    Result<std::unique_ptr<Transport>> transport = makeVerbsTransport(wanted, skipped);
    if (!transport) return fail(transport.error());
    Result<std::unique_ptr<Link>> opened = transport.value()->open(0);
    if (!opened) return fail(opened.error());
    Link& link = *opened.value();
    const std::string peer = swapAddresses(socket, link.address());
    if (!first && request.absent) return 0;
    const std::string cookie = !first && request.wrong_cookie ? "another-job" : "this-job";
    if (Status status = link.connect(peer, first, cookie, deadline); !status)
        return fail(status.error());
    for (int run = 0; run < request.runs; ++run) {
        const Result<Latency> latency = link.pingPong(first, request.rounds, deadline);
        if (!latency) return fail(latency.error());
        if (first)
            std::printf("latency %.2f %.2f %.2f %d\n", latency->min_us, latency->median_us,
                        latency->p99_us, latency->samples);
    }
    if (request.stream > 0) {
        if (first) {
            const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                  std::chrono::duration<double>(request.stream));
            const Result<Throughput> sent = link.send(request.bytes, until, deadline);
            if (!sent) return fail(sent.error());
            std::printf("stream %.4f\n", sent->gbs());
        } else if (Status status = link.receive(deadline); !status) {
            return fail(status.error());
        }
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const Request request = parse(argc, argv);
    if (request.devices.size() != 2) {
        std::fprintf(stderr, "verbs_probe: two devices must be named\n");
        return 2;
    }
    std::array<int, 2> sockets{};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) return 1;
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) std::_Exit(runEnd(request, false, sockets[1]));
    close(sockets[1]);
    const int mine = runEnd(request, true, sockets[0]);
    std::fflush(stdout);
    int status = 0;
    waitpid(child, &status, 0);
    return mine != 0 || status != 0 ? 1 : 0;
}
