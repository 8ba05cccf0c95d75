// The lines between controller and agents, which come from other nodes, and what schedulers print.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tuner/base/text.hpp"
#include "tuner/fabric/agree.hpp"
#include "tuner/fabric/commands.hpp"
#include "tuner/fabric/crew.hpp"
#include "tuner/fabric/hostlist.hpp"
#include "tuner/fabric/sample.hpp"

namespace {

using namespace rdmatune::fabric;

void require(bool holds) {
    if (!holds) std::abort();
}

void readAsEverything(const Message& message, Hello& hello) {
    constexpr int kNodes = 4;
    (void)readHello(message, hello);
    if (const auto edge = readEdge(message, kNodes))
        require(edge->edge.from < kNodes && edge->edge.to < kNodes && edge->gbs >= 0);
    if (const auto pair = readPair(message, kNodes)) require(pair->from != pair->to);
    for (const PairTest& pair : readPairs(message, kNodes))
        require(pair.from < kNodes && pair.to < kNodes);
    std::map<int, std::vector<Endpoint>> table;
    readTable(message, table);
    for (const auto& [number, endpoints] : table)
        for (const Endpoint& endpoint : endpoints)
            require(Endpoint::parse(endpoint.str()) == endpoint);
    require(readTempo(message).rounds > 0);
    require(readSetup(message).time.count() >= 0);
    for (const std::size_t size : readCollect(message).sizes) require(size > 0);
    // What was understood is written so that it is understood again.
    const auto again = Message::parse(message.line());
    require(again && again->kind() == message.kind() && again->values() == message.values());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Hello hello;
    for (const std::string_view line : rdmatune::split(text, '\n')) {
        if (const auto message = Message::parse(line)) readAsEverything(*message, hello);
        (void)endedTasks(line);
    }
    (void)agree({hello, hello});
    (void)shellWords(text);
    if (size < 4096) (void)sampleHosts({"a1", "a2", "a3"}, text, 2);
    return 0;
}
