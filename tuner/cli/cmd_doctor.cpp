// rdma-tune doctor: what stops GPUDirect RDMA on this node, and what else is wrong with it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tuner/cli/command.hpp"
#include "tuner/gpudirect/finding.hpp"
#include "tuner/gpudirect/gdr_judge.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune::cli {
namespace {

struct DoctorOptions {
    std::string topology;
    SystemRoots roots;
    bool json = false;
    bool health = false;
};

int count(const Diagnosis& diagnosis, Severity severity) {
    return static_cast<int>(std::ranges::count(diagnosis.findings, severity, &Finding::severity));
}

/// One line, as a scheduler stores it: the errors' codes, then the first one's sentence.
void printHealth(const Diagnosis& diagnosis) {
    std::vector<std::string> codes;
    const Finding* first = nullptr;
    for (const Finding& finding : diagnosis.findings) {
        if (finding.severity != Severity::Error) continue;
        if (first == nullptr) first = &finding;
        if (std::ranges::find(codes, finding.code) == codes.end()) codes.push_back(finding.code);
    }
    if (first == nullptr)
        fmt::print("rdma-tune: healthy (warnings: {})\n", count(diagnosis, Severity::Warning));
    else
        fmt::print("rdma-tune: {}: {}\n", fmt::join(codes, " "), first->what);
}

void printPairs(const Diagnosis& diagnosis, const Node& node) {
    if (diagnosis.pairs.empty()) return;
    fmt::print("GPUDirect RDMA, each GPU with its nearest HCA and all within NCCL's reach:\n");
    for (const GdrPair& pair : diagnosis.pairs) {
        const auto g = static_cast<std::size_t>(pair.gpu);
        const auto h = static_cast<std::size_t>(pair.hca);
        std::string answer;
        if (pair.way == GdrWay::Dmabuf)
            answer = "yes, by DMA-BUF";
        else if (pair.way == GdrWay::Peermem)
            answer = "yes, by peermem";
        else
            answer = fmt::format("{} ({})", toString(pair.way), pair.because);
        fmt::print("  {:<22} {:<12} {:<5} {}\n", gdr::gpuName(node.gpus[g]), node.hcas[h].label(),
                   toString(node.distance[g][h]), answer);
    }
    fmt::print("\n");
}

void printText(const Diagnosis& diagnosis, const Node& node) {
    printPairs(diagnosis, node);
    for (const Finding& finding : diagnosis.findings) {
        fmt::print("{}: {}: {}\n", toString(finding.severity), finding.code, finding.what);
        if (!finding.user.empty()) fmt::print("    you:   {}\n", finding.user);
        if (!finding.admin.empty()) fmt::print("    admin: {}\n", finding.admin);
    }
    for (const auto& setting : diagnosis.env)
        fmt::print("sets {}={}: {}\n", setting.name, setting.value, setting.reason);
    fmt::print("errors: {}, warnings: {}\n", count(diagnosis, Severity::Error),
               count(diagnosis, Severity::Warning));
}

int run(const DoctorOptions& options) {
    const Result<Node> node = options.topology.empty() ? readThisMachine(options.roots)
                                                       : readTopologyFile(options.topology);
    if (!node) return fail(node.error().message);
    // A saved topology is of some other machine: nothing of this one may be mixed in.
    const Diagnosis diagnosis = options.topology.empty() ? diagnose(node.value(), options.roots)
                                                         : judgeGdr(node.value(), GdrFacts{});
    if (options.json)
        fmt::print("{}\n", diagnosisToJson(diagnosis, node.value(), 2));
    else if (options.health)
        printHealth(diagnosis);
    else
        printText(diagnosis, node.value());
    return count(diagnosis, Severity::Error) > 0 ? kExitFailure : kExitOk;
}

}  // namespace

Command addDoctor(CLI::App& app, CLI::App*& subcommand) {
    const auto options = std::make_shared<DoctorOptions>();
    subcommand = app.add_subcommand(
        "doctor", "Say whether the HCAs reach the GPUs' memory, and what stops them");
    subcommand->footer(
        "Exit status: 0 healthy or warnings only, 1 at least one error (or the node could not be "
        "read),\n"
        "2 wrong usage. As root it sees more: PCIe configuration space is hidden from others.");
    subcommand->add_flag("--json", options->json, "Print findings, pairs and settings as JSON");
    subcommand->add_flag("--health", options->health,
                         "Print one line, for a health check (see conf/healthcheck.sh)");
    subcommand
        ->add_option("--topology", options->topology,
                     "Judge a saved topology instead of this machine")
        ->type_name("FILE");
    subcommand->add_option("--sys", options->roots.sys, "Read this tree instead of /sys")
        ->type_name("DIR");
    subcommand->add_option("--proc", options->roots.proc, "Read this tree instead of /proc")
        ->type_name("DIR");
    subcommand->add_option("--dev", options->roots.dev, "Look for devices here instead of /dev")
        ->type_name("DIR");
    return [options] { return run(*options); };
}

}  // namespace rdmatune::cli
