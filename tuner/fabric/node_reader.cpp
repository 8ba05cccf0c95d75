#include "tuner/fabric/node_reader.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tuner/base/text.hpp"
#include "tuner/binding/agreement.hpp"
#include "tuner/binding/plan.hpp"
#include "tuner/fabric/lines.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune::fabric {
namespace {

Result<Node> readNode(const Options& options, const std::string& host) {
    for (const auto& [pattern, file] : options.topology)
        if (fnmatch(pattern.c_str(), host.c_str(), 0) == 0) return readThisMachineThrough(file);
    return readThisMachine();
}

/// In the child: the node's JSON, or "!" and the reason.
[[noreturn]] void readAndTell(const Options& options, const std::string& host, int output) {
    Result<Node> node = readNode(options, host);
    const std::string text = node ? nodeToJson(*node) : "!" + node.error().message;
    (void)writeText(output, text, Deadline::max());
    _exit(0);
}

std::string readAll(int fd, Deadline deadline, bool& ended) {
    std::string text;
    std::array<char, 65536> chunk;
    while (waitReady(fd, POLLIN, deadline)) {
        const ssize_t got = ::read(fd, chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR) continue;
        ended = got == 0;
        if (got <= 0) break;
        text.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return text;
}

Result<Plan> planFor(const Node& node, const Options& options, const std::string& agreement) {
    PlanRequest request;
    request.hca_include = options.hca_include;
    request.hca_exclude = options.hca_exclude;
    if (!agreement.empty()) request.agreed = Agreement::parse(agreement);
    return makePlan(node, request);
}

}  // namespace

NodeFacts NodeReader::read(std::chrono::milliseconds timeout) {
    NodeFacts facts;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        facts.error = std::string("its hardware could not be read: ") + std::strerror(errno);
        return facts;
    }
    Fd input(ends[0]);
    Fd output(ends[1]);
    const Deadline deadline = Clock::now() + timeout;
    const pid_t pid = fork();
    if (pid == 0) readAndTell(options_, host_, output.get());
    output.reset();
    bool ended = false;
    const std::string text = pid > 0 ? readAll(input.get(), deadline, ended) : std::string();
    // Not waited for without end: a process stuck in a driver cannot even be killed.
    if (pid > 0) {
        if (!ended) kill(pid, SIGKILL);
        (void)waitpid(pid, nullptr, ended ? 0 : WNOHANG);
    }
    if (!ended || text.empty()) {
        facts.error =
            "its hardware could not be read in " + std::to_string(timeout.count()) + " ms";
        if (ended) facts.error = "reading its hardware crashed";
        return facts;
    }
    if (text.front() == '!') {
        facts.error = text.substr(1);
        return facts;
    }
    Result<Node> node = nodeFromJson(text, host_);
    if (!node) {
        facts.error = node.error().message;
        return facts;
    }
    node_ = std::move(*node);
    facts.gpus = static_cast<int>(node_->gpus.size());
    const Result<Plan> plan = planFor(*node_, options_, {});
    if (!plan) {
        facts.error = plan.error().message;
        return facts;
    }
    for (const int index : plan->hcas) {
        const Hca& hca = node_->hcas[static_cast<std::size_t>(index)];
        facts.hcas.push_back(
            {hca.label(), std::string(toString(hca.link_layer)), subnetOf(hca), hca.rate_gbps});
    }
    return facts;
}

Result<std::unique_ptr<Transport>> NodeReader::transport(const TransportChoice& choice,
                                                         std::vector<std::string>& notes) const {
    if (!choice.verbs) return makeTcpTransport(choice.bind_address);
    if (!node_) return Error{"its hardware is not known"};
    const Result<Plan> plan = planFor(*node_, options_, choice.agreement);
    if (!plan) return plan.error();
    VerbsRequest request;
    takeNcclSettings(request);
    request.use_gpu_memory = choice.gpu_memory && options_.gpu_memory;
    for (const int index : plan->hcas) {
        const Hca& hca = node_->hcas[static_cast<std::size_t>(index)];
        VerbsRequest::Rail rail{hca.name, hca.port, -1, {}};
        for (const GpuPair& pair : plan->pairs) {
            const Gpu& gpu = node_->gpus[static_cast<std::size_t>(pair.gpu)];
            if (rail.gpu >= 0 || pair.hcas.empty() || pair.hcas.front() != index) continue;
            rail.gpu = gpu.index;
            rail.gpu_pci = gpu.pci ? gpu.pci->str() : std::string();
        }
        request.rails.push_back(std::move(rail));
    }
    return makeVerbsTransport(request, notes);
}

}  // namespace rdmatune::fabric
