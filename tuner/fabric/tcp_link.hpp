// One TCP connection between two agents, with the framing that lets both ends meet again after one
// of them was cut off by its deadline.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tuner/fabric/socket.hpp"
#include "tuner/fabric/transport.hpp"

namespace rdmatune::fabric {

/// Every blocking call is one operation, counted alike on both ends; a frame carries its
/// operation's number. What an end finds left over from an earlier operation it drops, and what
/// belongs to a later one waits, so a call that was cut short spoils no later figure.
class TcpLink final : public Link {
  public:
    TcpLink(Fd listener, Endpoint own) : listener_(std::move(listener)), own_(std::move(own)) {}

    [[nodiscard]] std::string address() const override { return own_.str(); }
    [[nodiscard]] Status connect(std::string_view peer, bool active, std::string_view cookie,
                                 Deadline deadline) override;
    [[nodiscard]] Result<Latency> pingPong(bool initiator, int rounds, Deadline deadline) override;
    [[nodiscard]] Result<Throughput> send(std::size_t message_bytes, Clock::time_point until,
                                          Deadline deadline) override;
    [[nodiscard]] Status receive(Deadline deadline) override;
    [[nodiscard]] Status post(std::span<const std::byte> bytes) override;
    [[nodiscard]] Result<bool> flush() override;
    [[nodiscard]] Result<bool> take(std::span<std::byte> bytes) override;

  private:
    enum class Kind : std::uint32_t { Ping = 1, Pong, PingEnd, Data, DataEnd, DataAck, Message };
    struct Frame {
        std::uint32_t operation = 0;
        Kind kind = Kind::Ping;
        std::uint64_t value = 0;  ///< sequence, count, or length of what follows (Data, Message)
    };
    static constexpr std::size_t kHeader = 16;

    [[nodiscard]] Status connectActively(const Endpoint& peer, std::string_view cookie,
                                         Deadline deadline);
    [[nodiscard]] Status acceptPeer(std::string_view cookie, Deadline deadline);

    // Sending: at most one frame is under way.
    void queue(Kind kind, std::uint64_t value, const std::byte* body = nullptr,
               std::size_t size = 0);
    [[nodiscard]] bool sending() const { return head_left_ + body_left_ > 0; }
    [[nodiscard]] Result<bool> pump();
    [[nodiscard]] Status drain(Deadline deadline);
    [[nodiscard]] Status sendFrame(Kind kind, std::uint64_t value, Deadline deadline);
    [[nodiscard]] double bytesAtPeer() const;

    // Receiving: `frame_` is the frame whose header has arrived, `payload_left_` its missing bytes.
    [[nodiscard]] Result<bool> pull();
    [[nodiscard]] Result<bool> skipPayload();
    [[nodiscard]] Result<Frame> nextFrame(Deadline deadline);
    [[nodiscard]] Status begin();
    [[nodiscard]] Error broken(const std::string& why);

    Fd listener_;
    Endpoint own_;
    Fd socket_;
    std::string peer_;
    std::string broken_;        ///< why this link can no longer be used, or empty
    bool welcome_due_ = false;  ///< the peer's first byte will say that it accepted the cookie
    std::uint32_t operation_ = 0;

    std::array<char, kHeader> head_{};
    std::size_t head_left_ = 0;
    const std::byte* body_ = nullptr;
    std::size_t body_left_ = 0;
    bool body_is_callers_ = false;
    double written_ = 0;

    std::array<char, kHeader> incoming_{};
    std::size_t incoming_have_ = 0;
    std::optional<Frame> frame_;
    std::uint64_t payload_left_ = 0;
};

}  // namespace rdmatune::fabric
