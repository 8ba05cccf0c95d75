// `rdma-tune topo`: what is in this machine, or in a saved one.
#include <cstdio>
#include <memory>
#include <string>

#include "tuner/cli/command.hpp"
#include "tuner/topology/describe.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune::cli {
namespace {

struct TopoOptions {
    std::string topology;
    std::string root;
    bool json = false;
};

Result<Node> readNode(const TopoOptions& options) {
    if (!options.topology.empty()) return readTopologyFile(options.topology);
    if (options.root.empty()) return readThisMachine();
    return readThisMachine({options.root + "/sys", options.root + "/proc", options.root + "/dev"});
}

int runTopo(const TopoOptions& options) {
    const Result<Node> node = readNode(options);
    if (!node) return fail(node.error().message);
    const std::string text = options.json ? nodeToJson(*node, 2) + '\n' : describe(*node);
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    return written ? kExitOk : fail("topo: standard output cannot be written");
}

}  // namespace

Command addTopo(CLI::App& app, CLI::App*& subcommand) {
    subcommand = app.add_subcommand("topo", "Show GPUs, HCAs, PCIe switches and how near they are");
    auto options = std::make_shared<TopoOptions>();
    CLI::Option* saved = subcommand->add_option(
        "--topology", options->topology,
        "A saved machine instead of this one: hwloc XML, NCCL topology XML, the output of "
        "`nvidia-smi topo -m`, or this command's JSON");
    saved->type_name("FILE");
    subcommand
        ->add_option("--sysfs-root", options->root,
                     "Read DIR/sys, DIR/proc and DIR/dev instead of /sys, /proc and /dev")
        ->type_name("DIR")
        ->check(CLI::ExistingDirectory)
        ->excludes(saved);
    subcommand->add_flag("--json", options->json, "Print the machine as JSON");
    return [options] { return runTopo(*options); };
}

}  // namespace rdmatune::cli
