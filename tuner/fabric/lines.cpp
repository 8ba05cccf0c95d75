#include "tuner/fabric/lines.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tuner/fabric/socket.hpp"

namespace rdmatune::fabric {
namespace {

/// A line without an end must not fill the memory.
constexpr std::size_t kLongestLine = 4 << 20;

bool readable(int fd, int timeout_ms) {
    pollfd entry{fd, POLLIN, 0};
    return ::poll(&entry, 1, timeout_ms) > 0;
}

}  // namespace

std::optional<std::string> LineReader::takeLine() {
    const auto end = buffer_.find('\n', searched_);
    if (end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        searched_ = 0;
        return line;
    }
    searched_ = buffer_.size();
    if (buffer_.empty() || (!ended_ && buffer_.size() < kLongestLine)) return std::nullopt;
    searched_ = 0;
    return std::exchange(buffer_, {});
}

bool LineReader::fill() {
    std::array<char, 65536> chunk;
    for (;;) {
        const ssize_t got = read(fd_, chunk.data(), chunk.size());
        if (got > 0) {
            buffer_.append(chunk.data(), static_cast<std::size_t>(got));
            return true;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
        ended_ = true;
        return true;
    }
}

std::optional<std::string> LineReader::next(Deadline deadline) {
    for (;;) {
        if (auto line = takeLine()) return line;
        if (ended_) return std::nullopt;
        if (!waitReady(fd_, POLLIN, deadline)) return std::nullopt;
        if (!fill() && Clock::now() >= deadline) return std::nullopt;
    }
}

std::optional<std::string> LineReader::poll() {
    if (auto line = takeLine()) return line;
    if (ended_ || !readable(fd_, 0)) return std::nullopt;
    fill();
    return takeLine();
}

bool writeText(int fd, std::string_view text, Deadline deadline) {
    while (!text.empty()) {
        const ssize_t put = write(fd, text.data(), text.size());
        if (put > 0)
            text.remove_prefix(static_cast<std::size_t>(put));
        else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!waitReady(fd, POLLOUT, deadline)) return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

}  // namespace rdmatune::fabric
