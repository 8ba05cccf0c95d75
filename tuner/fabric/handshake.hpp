// The first bytes on every connection between agents: who comes, for what, and the job's secret.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rdmatune::fabric {

enum class Purpose : std::uint8_t { Control = 'C', Data = 'D' };

/// Fixed size, so that a reader needs no parser before it has seen the secret.
using Greeting = std::array<char, 80>;
inline constexpr char kWelcome = '+';

/// 128 random bits from the kernel as 32 hexadecimal digits; empty when the kernel gives none.
[[nodiscard]] std::string makeCookie();

[[nodiscard]] Greeting makeGreeting(Purpose purpose, std::string_view cookie, std::uint32_t from,
                                    std::uint32_t to);

struct Introduction {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
};
/// Nothing: not our protocol, another purpose, or not this job's cookie.
[[nodiscard]] std::optional<Introduction> checkGreeting(const Greeting& greeting, Purpose purpose,
                                                        std::string_view cookie);

/// One line on stderr: who was refused and why.
void logRefused(int fd, std::string_view why);

}  // namespace rdmatune::fabric
