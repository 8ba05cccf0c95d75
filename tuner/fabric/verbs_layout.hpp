// Where things are in the memory that a verbs link lets its peer write to. Equal in every program
// that speaks "rc1" addresses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdmatune::fabric::layout {

// The control page: what the peer writes in the first half, what is written from in the second.
constexpr std::size_t kPing = 0;
constexpr std::size_t kEnd = 64;    ///< streams that the peer has ended
constexpr std::size_t kHead = 128;  ///< message slots that the peer has filled
constexpr std::size_t kTail = 192;  ///< message slots that the peer has emptied
constexpr std::size_t kHello = 256;
constexpr std::size_t kCookie = 320;
constexpr std::size_t kCookieMax = 128;
constexpr std::size_t kOutgoing = 2048;
constexpr std::size_t kControlPage = 4096;

// Eight slots a direction, as NCCL's connections have; together they hold 128 KiB under way, which
// is what 50 GB/s carry in 2.6 us, about a round trip.
constexpr std::uint64_t kSlots = 8;
constexpr std::size_t kSlotBytes = 16384;
constexpr std::size_t kIncoming = kControlPage;
constexpr std::size_t kStaging = kIncoming + kSlots * kSlotBytes;
constexpr std::size_t kWithMessages = kStaging + kSlots * kSlotBytes;

/// Last ping of a ping-pong.
constexpr std::uint64_t kLastPing = std::uint64_t{1} << 63;
/// A hello's word: the cookie's length with one of these.
constexpr std::uint64_t kGreeting = std::uint64_t{1} << 32;
constexpr std::uint64_t kRefusal = std::uint64_t{1} << 33;

}  // namespace rdmatune::fabric::layout
