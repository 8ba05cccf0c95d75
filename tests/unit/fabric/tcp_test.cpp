// The TCP links and the connections between agents, one pair at a time.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "tuner/fabric/handshake.hpp"
#include "tuner/fabric/mesh.hpp"
#include "tuner/fabric/tcp_link.hpp"

namespace rdmatune::fabric {
namespace {

using std::chrono::milliseconds;

Deadline in(int ms) {
    return Clock::now() + milliseconds(ms);
}

/// Two ends of one link, connected or not.
struct Pair {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Link> here;
    std::unique_ptr<Link> there;
};

Pair makePair() {
    Pair pair;
    auto transport = makeTcpTransport("127.0.0.1");
    pair.transport = std::move(*transport);
    pair.here = pair.transport->open(0).value();
    pair.there = pair.transport->open(0).value();
    return pair;
}

Pair connectedPair() {
    Pair pair = makePair();
    EXPECT_TRUE(pair.here->connect(pair.there->address(), true, "secret", in(2000)).ok());
    EXPECT_TRUE(pair.there->connect(pair.here->address(), false, "secret", in(2000)).ok());
    return pair;
}

TEST(TcpLink, PingPongGivesPlausibleFigures) {
    Pair pair = connectedPair();
    std::thread answerer([&] { EXPECT_TRUE(pair.there->pingPong(false, 50, in(5000)).ok()); });
    const auto figures = pair.here->pingPong(true, 50, in(4000));
    answerer.join();
    ASSERT_TRUE(figures.ok()) << figures.error().message;
    EXPECT_EQ(figures->samples, 50);
    EXPECT_GT(figures->min_us, 0);
    EXPECT_LE(figures->min_us, figures->median_us);
    EXPECT_LE(figures->median_us, figures->p99_us);
}

TEST(TcpLink, StreamsAreCountedUntilTheyEnd) {
    Pair pair = connectedPair();
    std::thread receiver([&] { EXPECT_TRUE(pair.there->receive(in(5000)).ok()); });
    const auto sent = pair.here->send(1 << 20, in(200), in(4000));
    receiver.join();
    ASSERT_TRUE(sent.ok()) << sent.error().message;
    EXPECT_GT(sent->gbs(), 0);
    EXPECT_LT(sent->seconds, 3);
}

TEST(TcpLink, AnOperationThatWasCutShortSpoilsNoLaterOne) {
    Pair pair = connectedPair();
    // Nobody answers this ping-pong, nor takes this stream; the other end never calls them in time.
    EXPECT_FALSE(pair.here->pingPong(true, 10, in(30)).ok());
    (void)pair.here->send(1 << 20, in(20), in(40));
    (void)pair.there->pingPong(false, 10, in(0));
    (void)pair.there->receive(in(0));
    // The third operation is the third on both ends, with everything older still in the pipe.
    std::thread answerer([&] {
        const auto answered = pair.there->pingPong(false, 20, in(5000));
        EXPECT_TRUE(answered.ok()) << answered.error().message;
    });
    const auto figures = pair.here->pingPong(true, 20, in(4000));
    answerer.join();
    ASSERT_TRUE(figures.ok()) << figures.error().message;
    EXPECT_EQ(figures->samples, 20);
}

TEST(TcpLink, EveryCallEndsByItsDeadlineWhenThePeerIsSilent) {
    Pair pair = connectedPair();
    const auto start = Clock::now();
    EXPECT_FALSE(pair.here->pingPong(true, 1000, in(50)).ok());
    EXPECT_FALSE(pair.here->pingPong(false, 1000, in(50)).ok());
    EXPECT_FALSE(pair.here->receive(in(50)).ok());
    EXPECT_LT(Clock::now() - start, milliseconds(1500));
}

TEST(TcpLink, APeerThatGoesAwayIsNoticedAtOnce) {
    Pair pair = connectedPair();
    pair.there.reset();
    const auto start = Clock::now();
    const auto answered = pair.here->pingPong(false, 10, in(5000));
    ASSERT_FALSE(answered.ok());
    EXPECT_LT(Clock::now() - start, milliseconds(2000));
    EXPECT_FALSE(pair.here->send(1024, in(10), in(20)).ok()) << "it stays broken";
}

TEST(TcpLink, AWrongCookieIsRefusedAndTheRightOneStillGetsThrough) {
    Pair pair = makePair();
    Pair stranger = makePair();
    testing::internal::CaptureStderr();
    ASSERT_TRUE(stranger.here->connect(pair.there->address(), true, "guess", in(1000)).ok());
    ASSERT_TRUE(pair.here->connect(pair.there->address(), true, "secret", in(1000)).ok());
    ASSERT_TRUE(pair.there->connect(pair.here->address(), false, "secret", in(2000)).ok());
    const std::string logged = testing::internal::GetCapturedStderr();
    EXPECT_NE(logged.find("refused a connection from 127.0.0.1: wrong cookie"), std::string::npos)
        << logged;
    const auto strangers = stranger.here->pingPong(true, 1, in(500));
    ASSERT_FALSE(strangers.ok());
    std::thread answerer([&] { EXPECT_TRUE(pair.there->pingPong(false, 5, in(3000)).ok()); });
    EXPECT_TRUE(pair.here->pingPong(true, 5, in(2000)).ok());
    answerer.join();
}

TEST(TcpLink, ARefusedConnectionSaysWhere) {
    Pair pair = makePair();
    std::uint16_t port = 0;
    { const auto gone = listenOn("127.0.0.1", port); }
    const Status status =
        pair.here->connect(Endpoint{"127.0.0.1", port}.str(), true, "secret", in(500));
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("cannot connect to 127.0.0.1:" + std::to_string(port)),
              std::string::npos);
}

TEST(TcpLink, MessagesGoBothWaysAtOnce) {
    Pair pair = connectedPair();
    const std::size_t size = 3 << 20;
    const auto exchange = [size](Link& link, std::byte fill) {
        const std::vector<std::byte> out(size, fill);
        std::vector<std::byte> back(size);
        ASSERT_TRUE(link.post(out).ok());
        bool sent = false;
        bool got = false;
        const Deadline deadline = in(5000);
        while (!(sent && got)) {
            ASSERT_LT(Clock::now(), deadline);
            if (!sent) {
                const auto flushed = link.flush();
                ASSERT_TRUE(flushed.ok());
                sent = *flushed;
            }
            if (!got) {
                const auto taken = link.take(back);
                ASSERT_TRUE(taken.ok());
                got = *taken;
            }
        }
        EXPECT_EQ(back.front(), std::byte{3});
        EXPECT_EQ(back.back(), std::byte{3});
    };
    std::thread other([&] { exchange(*pair.there, std::byte{3}); });
    exchange(*pair.here, std::byte{3});
    other.join();
}

TEST(TcpLink, GarbageInsteadOfFramesBreaksTheLinkOnly) {
    Pair pair = makePair();
    const auto endpoint = Endpoint::parse(pair.there->address());
    ASSERT_TRUE(endpoint.has_value());
    const auto raw = startConnect(*endpoint);
    ASSERT_TRUE(raw.ok());
    ASSERT_TRUE(waitReady(raw->get(), POLLOUT, in(1000)));
    const Greeting greeting = makeGreeting(Purpose::Data, "secret", 0, 0);
    ASSERT_TRUE(sendAll(raw->get(), greeting.data(), greeting.size(), in(1000)).ok());
    ASSERT_TRUE(pair.there->connect(pair.here->address(), false, "secret", in(1000)).ok());
    const std::string garbage(4096, '\xff');
    ASSERT_TRUE(sendAll(raw->get(), garbage.data(), garbage.size(), in(1000)).ok());
    const auto answered = pair.there->pingPong(false, 5, in(1000));
    ASSERT_FALSE(answered.ok());
    EXPECT_NE(answered.error().message.find("not a frame"), std::string::npos)
        << answered.error().message;
}

TEST(Handshake, OnlyTheRightPurposeAndCookiePass) {
    const std::string cookie = makeCookie();
    EXPECT_EQ(cookie.size(), 32U);
    EXPECT_NE(cookie, makeCookie());
    const Greeting greeting = makeGreeting(Purpose::Control, cookie, 3, 9);
    const auto introduced = checkGreeting(greeting, Purpose::Control, cookie);
    ASSERT_TRUE(introduced.has_value());
    EXPECT_EQ(introduced->from, 3U);
    EXPECT_EQ(introduced->to, 9U);
    EXPECT_FALSE(checkGreeting(greeting, Purpose::Data, cookie).has_value());
    EXPECT_FALSE(checkGreeting(greeting, Purpose::Control, cookie.substr(1)).has_value());
    EXPECT_FALSE(checkGreeting(greeting, Purpose::Control, cookie + "0").has_value());
    EXPECT_FALSE(
        checkGreeting(makeGreeting(Purpose::Control, "", 0, 0), Purpose::Control, "").has_value())
        << "no secret is no secret";
    EXPECT_FALSE(checkGreeting(Greeting{}, Purpose::Control, cookie).has_value());
}

struct Member {
    std::unique_ptr<Mesh> mesh;
    Endpoint endpoint;
};

TEST(Mesh, ConnectsByTheFirstAddressThatAnswers) {
    std::uint16_t ports[2];
    Fd listeners[2];
    for (int i = 0; i < 2; ++i) listeners[i] = listenOn("", ports[i]).value();
    std::uint16_t closed = 0;
    { const auto gone = listenOn("127.0.0.1", closed); }
    // Position 1 is also said to listen where nobody does.
    const std::map<int, std::vector<Endpoint>> table{
        {0, {{"127.0.0.1", ports[0]}}}, {1, {{"127.0.0.1", closed}, {"127.0.0.1", ports[1]}}}};
    Mesh zero(std::move(listeners[0]), 0, "secret", table);
    Mesh one(std::move(listeners[1]), 1, "secret", table);
    std::thread other([&] { EXPECT_TRUE(one.connect({0}, in(3000)).empty()); });
    EXPECT_TRUE(zero.connect({1}, in(3000)).empty());
    other.join();
    ASSERT_TRUE(zero.sendLine(1, "hello there", in(1000)).ok());
    ASSERT_TRUE(zero.sendLine(1, std::string(10000, 'x'), in(1000)).ok());
    EXPECT_EQ(one.receiveLine(0, in(1000)).value(), "hello there");
    EXPECT_EQ(one.receiveLine(0, in(1000)).value().size(), 10000U);
    EXPECT_EQ(zero.ownAddressTowards(1), "127.0.0.1");
}

TEST(Mesh, StrangersAreRefusedAndMissingPeersNamed) {
    std::uint16_t port = 0;
    Fd listener = listenOn("", port).value();
    std::uint16_t closed = 0;
    { const auto gone = listenOn("127.0.0.1", closed); }
    Mesh mesh(std::move(listener), 1, "secret", {{0, {}}, {1, {}}, {2, {{"127.0.0.1", closed}}}});
    const auto stranger = startConnect({"127.0.0.1", port});
    ASSERT_TRUE(stranger.ok());
    ASSERT_TRUE(waitReady(stranger->get(), POLLOUT, in(1000)));
    const Greeting wrong = makeGreeting(Purpose::Control, "guess", 0, 1);
    ASSERT_TRUE(sendAll(stranger->get(), wrong.data(), wrong.size(), in(1000)).ok());
    const auto silent = startConnect({"127.0.0.1", port});
    ASSERT_TRUE(silent.ok());
    testing::internal::CaptureStderr();
    const auto missing = mesh.connect({0, 2}, in(300));
    const std::string logged = testing::internal::GetCapturedStderr();
    EXPECT_NE(logged.find("wrong cookie"), std::string::npos) << logged;
    EXPECT_NE(logged.find("did not introduce itself"), std::string::npos) << logged;
    ASSERT_EQ(missing.size(), 2U);
    EXPECT_EQ(missing.at(0), "it did not connect in time");
    EXPECT_NE(missing.at(2).find("refused"), std::string::npos) << missing.at(2);
    EXPECT_FALSE(mesh.connected(0));
}

TEST(Addresses, LoopbackOnlyWhereItIsAskedFor) {
    const auto loopback = ownAddresses(true, "");
    ASSERT_FALSE(loopback.empty());
    EXPECT_EQ(loopback.front(), "127.0.0.1");
    EXPECT_EQ(interfaceOf("127.0.0.1"), "lo");
    EXPECT_EQ(interfaceOf("192.0.2.77"), "");
    const auto real = ownAddresses(false, "");
    EXPECT_FALSE(real.empty());
}

}  // namespace
}  // namespace rdmatune::fabric
