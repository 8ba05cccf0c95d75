#include "tuner/gpudirect/small_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <string_view>

namespace rdmatune {

std::optional<std::string> readSmallFile(const std::string& path, std::size_t max) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return std::nullopt;
    std::string out;
    std::array<char, 4096> block{};
    bool ok = true;
    while (out.size() < max) {
        const ssize_t n = ::read(fd, block.data(), std::min(block.size(), max - out.size()));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) ok = !out.empty();
        if (n <= 0) break;
        out.append(block.data(), static_cast<std::size_t>(n));
    }
    ::close(fd);
    if (!ok) return std::nullopt;
    return out;
}

bool pathExists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

std::string linkName(const std::string& path) {
    std::array<char, PATH_MAX> target{};
    const ssize_t n = ::readlink(path.c_str(), target.data(), target.size());
    if (n <= 0) return {};
    const std::string_view text(target.data(), static_cast<std::size_t>(n));
    const auto slash = text.rfind('/');
    return std::string(slash == std::string_view::npos ? text : text.substr(slash + 1));
}

std::vector<std::string> listDirectory(const std::string& path, std::size_t max) {
    std::vector<std::string> out;
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), &::closedir);
    if (!dir) return out;
    while (out.size() < max) {
        const dirent* entry = ::readdir(dir.get());
        if (entry == nullptr) break;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") out.emplace_back(name);
    }
    std::ranges::sort(out);
    return out;
}

}  // namespace rdmatune
