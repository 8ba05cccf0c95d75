#include "tuner/fabric/commands.hpp"

#include <algorithm>

#include "tuner/base/text.hpp"

namespace rdmatune::fabric {
namespace {

std::chrono::milliseconds milliseconds(const Message& message, const std::string& key,
                                       std::chrono::milliseconds fallback) {
    constexpr std::int64_t kTenMinutes = 600'000;
    return std::chrono::milliseconds(
        std::clamp<std::int64_t>(message.integer(key, fallback.count()), 0, kTenMinutes));
}

constexpr std::size_t kMembersPerLine = 64;
constexpr std::size_t kLargestSize = std::size_t{1} << 32;

}  // namespace

Message setupMessage(const SetupCommand& command) {
    Message message(kEverybody, "setup");
    message.add("id", command.id).add("cookie", command.cookie).add("verbs", command.verbs ? 1 : 0);
    message.add("agreed", command.agreement).add("gpu", command.gpu_memory ? 1 : 0);
    return message.add("ms", command.time.count());
}

SetupCommand readSetup(const Message& message) {
    SetupCommand out;
    out.id = static_cast<int>(std::clamp<std::int64_t>(message.integer("id"), 0, 1'000'000));
    out.cookie = message.text("cookie");
    out.verbs = message.integer("verbs") == 1;
    out.agreement = message.text("agreed");
    out.gpu_memory = message.integer("gpu") == 1;
    out.time = milliseconds(message, "ms", out.time);
    return out;
}

std::string tableLines(const std::map<int, std::vector<Endpoint>>& table) {
    // A big job's table goes to every agent: each entry is kept short.
    const std::size_t most = table.size() > kMembersPerLine ? 2 : 4;
    std::string out;
    Message line(kEverybody, "at");
    std::size_t count = 0;
    for (const auto& [number, endpoints] : table) {
        std::vector<std::string> each;
        for (const Endpoint& endpoint : endpoints)
            if (each.size() < most) each.push_back(endpoint.str());
        line.add(std::to_string(number), join(each, ","));
        if (++count % kMembersPerLine != 0 && count != table.size()) continue;
        out += line.line();
        line = Message(kEverybody, "at");
    }
    return out;
}

void readTable(const Message& message, std::map<int, std::vector<Endpoint>>& table) {
    for (const auto& [key, value] : message.values()) {
        const auto number = parseInt<int>(key);
        if (!number || *number < 0) continue;
        std::vector<Endpoint>& endpoints = table[*number];
        endpoints.clear();
        for (const std::string_view part : split(value, ','))
            if (const auto endpoint = Endpoint::parse(part)) endpoints.push_back(*endpoint);
    }
}

Message& addTempo(Message& message, const Tempo& tempo) {
    message.add("lat", tempo.latency.count()).add("bw", tempo.bandwidth.count());
    return message.add("rounds", tempo.rounds)
        .add("bytes", static_cast<std::int64_t>(tempo.message_bytes));
}

Tempo readTempo(const Message& message) {
    Tempo out;
    out.latency = milliseconds(message, "lat", out.latency);
    out.bandwidth = milliseconds(message, "bw", out.bandwidth);
    out.rounds = static_cast<int>(
        std::clamp<std::int64_t>(message.integer("rounds", out.rounds), 1, 1'000'000));
    out.message_bytes = static_cast<std::size_t>(std::clamp<std::int64_t>(
        message.integer("bytes", static_cast<std::int64_t>(out.message_bytes)), 1, 1 << 26));
    return out;
}

Message& addPairs(Message& message, const std::vector<PairTest>& pairs) {
    std::vector<std::string> each;
    for (const PairTest& pair : pairs)
        each.push_back(std::to_string(pair.id) + ":" + std::to_string(pair.slot) + ":" +
                       std::to_string(pair.from) + ":" + std::to_string(pair.to));
    return message.add("pairs", join(each, ","));
}

std::vector<PairTest> readPairs(const Message& message, int nodes) {
    constexpr int kMost = 1024;
    std::vector<PairTest> out;
    const std::string text = message.text("pairs");
    if (text.empty()) return out;
    for (const std::string_view part : split(text, ',')) {
        const auto fields = split(part, ':');
        if (fields.size() != 4) continue;
        const auto id = parseInt<int>(fields[0]);
        const auto slot = parseInt<int>(fields[1]);
        const auto from = parseInt<int>(fields[2]);
        const auto to = parseInt<int>(fields[3]);
        if (!id || !slot || !from || !to || *id < 0 || *slot < 0 || *slot > kMost) continue;
        if (*from < 0 || *from >= nodes || *to < 0 || *to >= nodes || *from == *to) continue;
        if (out.size() < kMost) out.push_back({*id, *slot, *from, *to});
    }
    // Both ends take their pairs slot by slot.
    std::stable_sort(out.begin(), out.end(),
                     [](const PairTest& a, const PairTest& b) { return a.slot < b.slot; });
    return out;
}

Message collectMessage(const CollectCommand& command) {
    Message message(kEverybody, "collect");
    std::vector<std::string> sizes;
    for (const std::size_t size : command.sizes) sizes.push_back(std::to_string(size));
    return message.add("sizes", join(sizes, ",")).add("ms", command.time.count());
}

CollectCommand readCollect(const Message& message) {
    CollectCommand out;
    const std::string sizes = message.text("sizes");
    for (const std::string_view part : split(sizes, ','))
        if (const auto size = parseInt<std::size_t>(part);
            size && *size > 0 && *size <= kLargestSize)
            out.sizes.push_back(*size);
    out.time = milliseconds(message, "ms", out.time);
    return out;
}

}  // namespace rdmatune::fabric
