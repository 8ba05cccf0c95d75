// rdma-tune.conf: `key = value` lines, read by inih.
#include <fcntl.h>
#include <ini.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "tuner/base/text.hpp"
#include "tuner/config/options.hpp"
#include "tuner/config/row.hpp"

namespace rdmatune {
namespace {

constexpr off_t kLargestFile = 64 * 1024;
// inih cuts longer lines in two, and the second half would be read as a line of its own.
constexpr std::size_t kLongestLine = 190;

/// The whole file, if it is one that nobody but root or the caller can have written.
Result<std::string> readTrusted(const std::string& path, bool may_be_missing, bool& missing) {
    // O_NONBLOCK: a FIFO in the file's place must not hold up srun. What fstat says of the open
    // descriptor cannot be exchanged between the check and the reading.
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        const int reason = errno;
        missing = reason == ENOENT && may_be_missing;
        if (missing) return std::string();
        if (reason == ELOOP)
            return Error{path +
                         ": is a symbolic link; expected the file itself (set config= in "
                         "plugstack.conf to where it really is)"};
        return Error{path + ": cannot be opened: " + std::strerror(reason) +
                     "; expected a file that everybody may read (chmod 644)"};
    }
    struct Closer {
        int fd;
        ~Closer() { close(fd); }
    } const closer{fd};
    struct stat before {};
    if (fstat(fd, &before) != 0) return Error{path + ": " + std::strerror(errno)};
    if (!S_ISREG(before.st_mode)) return Error{path + ": is not a regular file"};
    const uid_t caller = geteuid();
    if (before.st_uid != 0 && before.st_uid != caller)
        return Error{path + ": belongs to user " + std::to_string(before.st_uid) +
                     "; expected root (chown root)"};
    if ((before.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return Error{path + ": can be written by its group or by others (chmod go-w)"};
    if (before.st_size > kLargestFile)
        return Error{path + ": is larger than 64 KB and cannot be a configuration"};
    std::string text;
    char buffer[4096];
    for (;;) {
        const ssize_t got = read(fd, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error{path + ": cannot be read: " + std::strerror(errno)};
        if (got == 0) break;
        text.append(buffer, static_cast<std::size_t>(got));
        if (text.size() > static_cast<std::size_t>(kLargestFile))
            return Error{path + ": is larger than 64 KB and cannot be a configuration"};
    }
    struct stat after {};
    if (fstat(fd, &after) != 0 || after.st_mtim.tv_sec != before.st_mtim.tv_sec ||
        after.st_mtim.tv_nsec != before.st_mtim.tv_nsec || after.st_size != before.st_size)
        return Error{path + ": was changed while it was read; start again"};
    return text;
}

/// One reading of the file: inih calls nextLine for lines and takeOption for what is on them.
struct Reading {
    const std::string& path;
    std::vector<std::string_view> lines;
    std::size_t next = 0;  // also the number of the line that inih is looking at
    Options options;
    std::set<std::string> seen;
    std::string error;

    [[nodiscard]] std::string here() const { return path + ":" + std::to_string(next); }
    void failHere(const std::string& why) {
        if (error.empty()) error = here() + ": " + why;
    }
};

char* nextLine(char* buffer, int size, void* stream) {
    auto& reading = *static_cast<Reading*>(stream);
    if (reading.next >= reading.lines.size() || !reading.error.empty()) return nullptr;
    // Without its indentation: inih would take an indented line for the rest of the line before.
    const std::string_view line = trim(reading.lines[reading.next++]);
    if (line.size() > kLongestLine || line.size() + 2 > static_cast<std::size_t>(size)) {
        reading.failHere("is longer than " + std::to_string(kLongestLine) +
                         " characters; keys that take a list may be repeated");
        return nullptr;
    }
    if (line.find('\0') != std::string_view::npos) {
        reading.failHere("contains a zero byte; expected text");
        return nullptr;
    }
    line.copy(buffer, line.size());  // an empty line has no data, which memcpy may not be given
    buffer[line.size()] = '\n';
    buffer[line.size() + 1] = '\0';
    return buffer;
}

bool mayRepeat(std::string_view key) {
    return key == "rule" || key == "topology" || key == "hca_include" || key == "hca_exclude";
}

int takeOption(void* user, const char* section, const char* name, const char* value) {
    auto& reading = *static_cast<Reading*>(user);
    const std::string key = lower(name);
    const std::string_view room(section);
    if (!room.empty() && room != "rdma-tune") {
        reading.failHere("unknown section [" + std::string(room) +
                         "]; expected [rdma-tune] or none");
        return 0;
    }
    const config::Row* row = config::findFileRow(key);
    if (row == nullptr) {
        reading.failHere("unknown key '" + key + "'; known are " + config::fileKeys());
        return 0;
    }
    if (!reading.seen.insert(key).second && !mayRepeat(key)) {
        reading.failHere("'" + key + "' was given before; expected it once");
        return 0;
    }
    const Status status = row->set(reading.options, {trim(value), reading.here(), true});
    if (!status) reading.failHere(key + ": " + status.error().message);
    return status ? 1 : 0;
}

}  // namespace

Status applyFile(Options& options, const std::string& path) {
    bool missing = false;
    const Result<std::string> text = readTrusted(path, path == Options{}.config, missing);
    if (!text) return text.error();
    if (missing) return Done{};
    std::string_view rest(*text);
    if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);  // a byte order mark
    Reading reading{path, split(rest, '\n'), 0, options, {}, {}};
    const int failed = ini_parse_stream(nextLine, &reading, takeOption, &reading);
    if (!reading.error.empty()) return Error{reading.error};
    if (failed > 0)
        return Error{path + ":" + std::to_string(failed) +
                     ": expected KEY = VALUE, a [rdma-tune] "
                     "line or a comment beginning with #"};
    if (failed < 0) return Error{path + ": out of memory"};
    options = std::move(reading.options);
    return Done{};
}

}  // namespace rdmatune
