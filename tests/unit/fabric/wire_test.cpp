#include "tuner/fabric/wire.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tuner/fabric/commands.hpp"

namespace rdmatune::fabric {
namespace {

Message parsed(std::string_view line) {
    const auto message = Message::parse(line);
    EXPECT_TRUE(message.has_value()) << line;
    return message ? *message : Message(0, "none");
}

TEST(Wire, ALineComesBackAsItWent) {
    Message message(7, "note");
    message.add("text", "50 % of\tall\nlines = odd")
        .add("count", 3)
        .add("time", 1.25)
        .add("empty", "");
    const std::string line = message.line();
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    const Message back = parsed(line);
    EXPECT_EQ(back.number(), 7);
    EXPECT_EQ(back.kind(), "note");
    EXPECT_EQ(back.text("text"), "50 % of\tall\nlines = odd");
    EXPECT_EQ(back.integer("count"), 3);
    EXPECT_DOUBLE_EQ(back.real("time"), 1.25);
    EXPECT_EQ(back.text("empty"), "");
    EXPECT_EQ(back.integer("absent", -4), -4);
}

TEST(Wire, LinesOfOthersAreNoMessages) {
    for (const char* line :
         {"", "Welcome to the cluster", "rt1", "rt1 ", "rt1 3", "rt1 x hello", "rt1 -2 hello",
          "rt1 3 hello word", "rt1 3 hello =value", "rt2 3 hello", "rt1 99999999999 hello"})
        EXPECT_FALSE(Message::parse(line).has_value()) << line;
}

TEST(Wire, FiguresOutOfThisWorldCountAsAbsent) {
    const Message message = parsed("rt1 0 edge a=-1 b=inf c=nan d=1e400 e=12x f=0.5");
    for (const char* key : {"a", "b", "c", "d", "e"})
        EXPECT_DOUBLE_EQ(message.real(key, 9), 9) << key;
    EXPECT_DOUBLE_EQ(message.real("f"), 0.5);
}

Hello sampleHello() {
    Hello hello;
    hello.number = 3;
    hello.wire = kWireVersion;
    hello.version = "1.2.3";
    hello.host = "gpu03";
    hello.leaf = "leaf 1";
    hello.machine = 123456789012345;
    hello.cores = 64;
    hello.endpoints = {{"10.0.0.3", 4711}, {"fd00::3", 4711}};
    hello.facts.gpus = 8;
    hello.facts.hcas = {{"mlx5_0", "InfiniBand", "fe800000:00000000", 400},
                        {"mlx5_1:2", "Ethernet", "", 200}};
    hello.facts.error = "one of them is odd";
    return hello;
}

TEST(Wire, AnIntroductionComesBackAsItWent) {
    const Hello hello = sampleHello();
    Hello back;
    bool complete = false;
    const std::string lines = helloLines(hello);
    std::size_t begin = 0;
    while (begin < lines.size()) {
        const auto end = lines.find('\n', begin);
        EXPECT_LT(end - begin, kLineMax);
        EXPECT_FALSE(complete) << "nothing follows the hello line";
        complete = readHello(parsed(lines.substr(begin, end - begin)), back);
        begin = end + 1;
    }
    EXPECT_TRUE(complete);
    EXPECT_EQ(back, hello);
}

TEST(Wire, AnEdgeComesBackAsItWent) {
    EdgeResult edge;
    edge.edge = {Pattern::Tree1, 4, 2, 1};
    edge.down = true;
    edge.latency = Latency{1.5, 2.25, 9.125, 200};
    edge.gbs = 12.5;
    edge.rail_gbs = 6.25;
    edge.rails = {6.25, 6.125};
    edge.error = "late";
    const auto back = readEdge(parsed(edgeMessage(4, edge).line()), 5);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->edge, edge.edge);
    EXPECT_TRUE(back->down);
    ASSERT_TRUE(back->latency.has_value());
    EXPECT_DOUBLE_EQ(back->latency->median_us, 2.25);
    EXPECT_EQ(back->latency->samples, 200);
    EXPECT_DOUBLE_EQ(back->gbs, 12.5);
    EXPECT_EQ(back->rails.size(), 2U);
    EXPECT_EQ(back->error, "late");
    EXPECT_FALSE(readEdge(edgeMessage(4, edge), 4).has_value()) << "position 4 of 4 does not exist";
}

TEST(Wire, ResultsThatCannotBeAreRefused) {
    for (const char* line :
         {"rt1 0 edge", "rt1 0 edge p=3 from=0 to=1 round=0", "rt1 0 edge p=0 from=0 to=0 round=0",
          "rt1 0 edge p=0 from=-1 to=1 round=0", "rt1 0 edge p=0 from=0 to=1 round=3"})
        EXPECT_FALSE(readEdge(parsed(line), 4).has_value()) << line;
    for (const char* line : {"rt1 0 pair", "rt1 0 pair id=0 from=1 to=1",
                             "rt1 0 pair id=-1 from=0 to=1", "rt1 0 pair id=0 from=0 to=4"})
        EXPECT_FALSE(readPair(parsed(line), 4).has_value()) << line;
}

TEST(Wire, TheTableGoesOverManyLines) {
    std::map<int, std::vector<Endpoint>> table;
    for (int number = 0; number < 200; ++number)
        table[number * 3] = {{"10.0.0." + std::to_string(number % 250 + 1),
                              static_cast<std::uint16_t>(1000 + number)}};
    const std::string lines = tableLines(table);
    std::map<int, std::vector<Endpoint>> back;
    std::size_t begin = 0;
    while (begin < lines.size()) {
        const auto end = lines.find('\n', begin);
        readTable(parsed(lines.substr(begin, end - begin)), back);
        begin = end + 1;
    }
    EXPECT_EQ(back, table);
}

TEST(Wire, CommandsComeBackAsTheyWent) {
    const SetupCommand setup{4,    "0123456789abcdef",
                             true, "rt-agreed/1 rails=2 layer=IB",
                             true, std::chrono::milliseconds(750)};
    const SetupCommand setup_back = readSetup(parsed(setupMessage(setup).line()));
    EXPECT_EQ(setup_back.id, 4);
    EXPECT_EQ(setup_back.cookie, setup.cookie);
    EXPECT_TRUE(setup_back.verbs);
    EXPECT_EQ(setup_back.agreement, setup.agreement);
    EXPECT_EQ(setup_back.time, setup.time);

    Message go(kEverybody, "go");
    const Tempo tempo{std::chrono::milliseconds(7), std::chrono::milliseconds(0), 99, 65536};
    const Tempo tempo_back = readTempo(parsed(addTempo(go, tempo).line()));
    EXPECT_EQ(tempo_back.latency, tempo.latency);
    EXPECT_EQ(tempo_back.bandwidth, tempo.bandwidth);
    EXPECT_EQ(tempo_back.rounds, 99);
    EXPECT_EQ(tempo_back.message_bytes, 65536U);

    Message retest(kEverybody, "retest");
    addPairs(retest, {{0, 1, 2, 3}, {1, 0, 0, 1}});
    const auto pairs = readPairs(parsed(retest.line()), 4);
    ASSERT_EQ(pairs.size(), 2U);
    EXPECT_EQ(pairs[0].from, 0) << "in the order of slots";
    EXPECT_EQ(readPairs(retest, 3).size(), 1U) << "a position that does not exist is left out";
    EXPECT_TRUE(
        readPairs(parsed("rt1 -1 retest pairs=1:2:3,x,1:1:1:1,1:-1:0:1,0:99999:0:1"), 4).empty());

    const CollectCommand collect =
        readCollect(parsed(collectMessage({{8, 1024}, std::chrono::milliseconds(5)}).line()));
    EXPECT_EQ(collect.sizes, (std::vector<std::size_t>{8, 1024}));
}

TEST(Wire, NoByteSequenceBreaksTheReaders) {
    std::mt19937 random(20260731);
    const std::string seed =
        helloLines(sampleHello()) +
        edgeMessage(1, {{Pattern::Ring, 0, 1, 0}, false, {}, Latency{1, 2, 3, 4}, 1, 1, {1, 2}})
            .line() +
        "rt1 -1 at 0=10.0.0.1:1,10.0.0.2:2 1=[::1]:3\n" + "rt1 -1 retest pairs=0:0:0:1\n" +
        "rt1 -1 collect sizes=8,16\n";
    int messages = 0;
    for (int turn = 0; turn < 20000; ++turn) {
        std::string line = seed;
        for (int change = 0; change < 4; ++change) {
            const std::size_t at = random() % line.size();
            switch (random() % 3) {
                case 0:
                    line[at] = static_cast<char>(random());
                    break;
                case 1:
                    line.erase(at, random() % 20);
                    break;
                default:
                    line.insert(at, 1, static_cast<char>(random()));
                    break;
            }
            if (line.empty()) line = seed;
        }
        const std::size_t begin = random() % line.size();
        const auto message = Message::parse(std::string_view(line).substr(begin, random() % 300));
        if (!message) continue;
        ++messages;
        Hello hello;
        (void)readHello(*message, hello);
        if (const auto edge = readEdge(*message, 2)) {
            EXPECT_LT(edge->edge.from, 2);
        }
        if (const auto pair = readPair(*message, 2)) {
            EXPECT_LT(pair->to, 2);
        }
        std::map<int, std::vector<Endpoint>> table;
        readTable(*message, table);
        for (const PairTest& pair : readPairs(*message, 2)) EXPECT_NE(pair.from, pair.to);
        EXPECT_GE(readTempo(*message).rounds, 1);
        (void)readSetup(*message);
        for (const std::size_t size : readCollect(*message).sizes) EXPECT_GT(size, 0U);
    }
    EXPECT_GT(messages, 10) << "the changed lines are hardly ever messages: the test tests nothing";
}

TEST(Endpoint, Texts) {
    EXPECT_EQ(Endpoint::parse("10.0.0.1:80"), (Endpoint{"10.0.0.1", 80}));
    EXPECT_EQ(Endpoint::parse("[fd00::1]:80"), (Endpoint{"fd00::1", 80}));
    EXPECT_EQ((Endpoint{"fd00::1", 80}).str(), "[fd00::1]:80");
    for (const char* text : {"", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:70000", "host:80",
                             "fd00::1:80", "[10:80", "[]:80"})
        EXPECT_FALSE(Endpoint::parse(text).has_value()) << text;
}

}  // namespace
}  // namespace rdmatune::fabric
