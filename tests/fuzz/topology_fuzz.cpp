// Saved topologies come from users and sites: any text ends in a Node or in an error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tuner/binding/plan.hpp"
#include "tuner/topology/read.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rdmatune;
    const Result<Node> node =
        readTopologyText(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    if (!node) return 0;
    // What was read can be written, read again and planned with.
    const Result<Node> again = nodeFromJson(nodeToJson(*node), "again");
    if (!again || nodeToJson(*again) != nodeToJson(*node)) std::abort();
    std::size_t cpus = 0;
    for (const NumaNode& numa : node->numa) cpus += numa.cpus.size();
    if (cpus > 4096) return 0;  // more than any machine has; sharing them out takes seconds
    PlanRequest request;
    request.local_tasks = 4;
    (void)makePlan(*node, request);
    return 0;
}
