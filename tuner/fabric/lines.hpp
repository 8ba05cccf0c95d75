// Lines out of a descriptor, each waited for no longer than a deadline.
#pragma once

#include <optional>
#include <string>

#include "tuner/fabric/transport.hpp"

namespace rdmatune::fabric {

class LineReader {
  public:
    explicit LineReader(int fd) : fd_(fd) {}

    /// The next line without its end; nothing when the deadline came first or the other side has
    /// closed (then ended() is true). A last line without an end counts.
    [[nodiscard]] std::optional<std::string> next(Deadline deadline);
    /// What is there already: reads once without waiting, gives a line if one is complete.
    [[nodiscard]] std::optional<std::string> poll();
    [[nodiscard]] bool ended() const { return ended_ && buffer_.empty(); }
    [[nodiscard]] int fd() const { return fd_; }

  private:
    [[nodiscard]] std::optional<std::string> takeLine();
    bool fill();

    int fd_;
    std::string buffer_;
    std::size_t searched_ = 0;
    bool ended_ = false;
};

/// Writes all of the text to a pipe or file; false: the reader is gone or the deadline came first.
[[nodiscard]] bool writeText(int fd, std::string_view text, Deadline deadline);

}  // namespace rdmatune::fabric
