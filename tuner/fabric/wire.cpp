#include "tuner/fabric/wire.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tuner/base/text.hpp"

namespace rdmatune::fabric {
namespace {

constexpr std::string_view kMagic = "rt1 ";

std::string encode(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > 0x20 && byte != 0x7f && c != '%') {
            out += c;
            continue;
        }
        char escaped[4];
        std::snprintf(escaped, sizeof escaped, "%%%02x", byte);
        out += escaped;
    }
    return out;
}

int hexDigit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

std::string decode(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && hexDigit(text[i + 1]) >= 0 &&
            hexDigit(text[i + 2]) >= 0) {
            out += static_cast<char>(hexDigit(text[i + 1]) * 16 + hexDigit(text[i + 2]));
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

void addLatency(Message& message, const std::optional<Latency>& latency) {
    if (!latency) return;
    message.add("min", latency->min_us).add("med", latency->median_us);
    message.add("p99", latency->p99_us).add("n", latency->samples);
}

std::optional<Latency> readLatency(const Message& message) {
    const auto samples = message.integer("n");
    if (samples <= 0 || samples > 1'000'000'000 || message.real("med") <= 0) return std::nullopt;
    return Latency{message.real("min"), message.real("med"), message.real("p99"),
                   static_cast<int>(samples)};
}

/// Error texts are cut so that a line stays whole on its way through srun.
std::string_view shortened(std::string_view text) {
    return text.substr(0, 200);
}

constexpr std::size_t kMaxRails = 32;
constexpr std::size_t kMaxHcas = 256;

}  // namespace

Message& Message::add(const std::string& key, std::string_view value) {
    values_[key] = value;
    return *this;
}

Message& Message::add(const std::string& key, double value) {
    char text[48];
    std::snprintf(text, sizeof text, "%.3f", value);
    return add(key, std::string_view(text));
}

std::string Message::text(const std::string& key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? std::string() : at->second;
}

std::int64_t Message::integer(const std::string& key, std::int64_t fallback) const {
    return parseInt<std::int64_t>(text(key)).value_or(fallback);
}

double Message::real(const std::string& key, double fallback) const {
    const auto value = parseReal(text(key));
    return value && std::isfinite(*value) && *value >= 0 ? *value : fallback;
}

std::string Message::line() const {
    std::string out(kMagic);
    out += std::to_string(number_) + " " + kind_;
    for (const auto& [key, value] : values_) out += " " + key + "=" + encode(value);
    return out + "\n";
}

std::optional<Message> Message::parse(std::string_view line) {
    line = trim(line);
    if (!line.starts_with(kMagic)) return std::nullopt;
    const auto words = split(line.substr(kMagic.size()), ' ');
    if (words.size() < 2 || words[1].empty()) return std::nullopt;
    const auto number = parseInt<int>(words[0]);
    if (!number || *number < kEverybody) return std::nullopt;
    Message out(*number, std::string(words[1]));
    for (std::size_t i = 2; i < words.size(); ++i) {
        const auto equals = words[i].find('=');
        if (equals == std::string_view::npos || equals == 0) return std::nullopt;
        out.values_[std::string(words[i].substr(0, equals))] = decode(words[i].substr(equals + 1));
    }
    return out;
}

std::string helloLines(const Hello& hello) {
    std::string out;
    for (const HcaFact& hca : hello.facts.hcas) {
        Message message(hello.number, "hca");
        message.add("label", hca.label).add("layer", hca.layer).add("subnet", hca.subnet);
        out += message.add("rate", hca.rate_gbps).line();
    }
    std::vector<std::string> at;
    for (const Endpoint& endpoint : hello.endpoints) at.push_back(endpoint.str());
    Message message(hello.number, "hello");
    message.add("wire", hello.wire).add("version", hello.version).add("host", hello.host);
    message.add("leaf", hello.leaf).add("machine", hello.machine).add("cores", hello.cores);
    message.add("at", join(at, ",")).add("gpus", hello.facts.gpus);
    message.add("error", shortened(hello.facts.error));
    return out + message.line();
}

bool readHello(const Message& message, Hello& hello) {
    hello.number = message.number();
    if (message.kind() == "hca") {
        if (hello.facts.hcas.size() >= kMaxHcas) return false;
        hello.facts.hcas.push_back({message.text("label"), message.text("layer"),
                                    message.text("subnet"), message.real("rate")});
        return false;
    }
    if (message.kind() != "hello") return false;
    hello.wire = static_cast<int>(std::clamp<std::int64_t>(message.integer("wire"), 0, 1 << 20));
    hello.version = message.text("version");
    hello.host = message.text("host");
    hello.leaf = message.text("leaf");
    hello.machine = message.integer("machine");
    hello.cores = static_cast<int>(std::clamp<std::int64_t>(message.integer("cores"), 1, 1 << 16));
    hello.facts.gpus =
        static_cast<int>(std::clamp<std::int64_t>(message.integer("gpus"), 0, 1 << 16));
    hello.facts.error = message.text("error");
    hello.endpoints.clear();
    const std::string at = message.text("at");
    for (const std::string_view part : split(at, ','))
        if (const auto endpoint = Endpoint::parse(part)) hello.endpoints.push_back(*endpoint);
    return true;
}

Message edgeMessage(int number, const EdgeResult& result) {
    Message message(number, "edge");
    message.add("p", static_cast<int>(result.edge.pattern)).add("from", result.edge.from);
    message.add("to", result.edge.to)
        .add("round", result.edge.round)
        .add("down", result.down ? 1 : 0);
    addLatency(message, result.latency);
    if (result.gbs > 0) message.add("mbps", result.gbs * 1e3);
    if (result.rail_gbs > 0) message.add("rail", result.rail_gbs * 1e3);
    if (result.rails.size() > 1) {
        std::vector<std::string> each;
        for (const double gbs : result.rails)
            each.push_back(std::to_string(std::llround(gbs * 1e3)));
        message.add("rails", join(each, ","));
    }
    if (!result.error.empty()) message.add("error", shortened(result.error));
    return message;
}

std::optional<EdgeResult> readEdge(const Message& message, int nodes) {
    const auto within = [nodes](std::int64_t position) {
        return position >= 0 && position < nodes;
    };
    const auto pattern = message.integer("p", -1);
    const auto from = message.integer("from", -1);
    const auto to = message.integer("to", -1);
    const auto round = message.integer("round", -1);
    if (pattern < 0 || pattern > 2 || !within(from) || !within(to) || from == to || round < 0 ||
        round > 2)
        return std::nullopt;
    EdgeResult out;
    out.edge = {static_cast<Pattern>(pattern), static_cast<int>(from), static_cast<int>(to),
                static_cast<int>(round)};
    out.down = message.integer("down") == 1;
    out.latency = readLatency(message);
    out.gbs = message.real("mbps") * 1e-3;
    out.rail_gbs = message.real("rail") * 1e-3;
    out.error = message.text("error");
    const std::string rails = message.text("rails");
    if (rails.empty()) return out;
    for (const std::string_view part : split(rails, ','))
        if (const auto mbps = parseInt<std::int64_t>(part);
            mbps && *mbps >= 0 && out.rails.size() < kMaxRails)
            out.rails.push_back(static_cast<double>(*mbps) * 1e-3);
    return out;
}

Message pairMessage(int number, const PairResult& result) {
    Message message(number, "pair");
    message.add("id", result.id).add("from", result.from).add("to", result.to);
    addLatency(message, result.latency);
    if (result.gbs > 0) message.add("mbps", result.gbs * 1e3);
    if (!result.error.empty()) message.add("error", shortened(result.error));
    return message;
}

std::optional<PairResult> readPair(const Message& message, int nodes) {
    const auto from = message.integer("from", -1);
    const auto to = message.integer("to", -1);
    const auto id = message.integer("id", -1);
    if (from < 0 || from >= nodes || to < 0 || to >= nodes || from == to || id < 0 ||
        id > 1'000'000)
        return std::nullopt;
    PairResult out;
    out.id = static_cast<int>(id);
    out.from = static_cast<int>(from);
    out.to = static_cast<int>(to);
    out.latency = readLatency(message);
    out.gbs = message.real("mbps") * 1e-3;
    out.error = message.text("error");
    return out;
}

}  // namespace rdmatune::fabric
