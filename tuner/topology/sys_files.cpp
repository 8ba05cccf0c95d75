#include "tuner/topology/sys_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>

#include "tuner/base/text.hpp"

namespace rdmatune {
namespace fs = std::filesystem;

std::optional<std::string> readSmall(const fs::path& path, std::size_t limit) {
    // Not blocking: a FIFO planted in a test tree must not hold us up.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return std::nullopt;
    struct stat info {};
    std::optional<std::string> out;
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        out.emplace(limit, '\0');
        std::size_t size = 0;
        while (size < limit) {
            const ssize_t n = ::read(fd, out->data() + size, limit - size);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) out.reset();
            if (n <= 0) break;
            size += static_cast<std::size_t>(n);
        }
        if (out) *out = std::string(trim(std::string_view(*out).substr(0, size)));
    }
    ::close(fd);
    return out;
}

std::optional<int> readNumber(const fs::path& path) {
    const auto text = readSmall(path);
    if (!text) return std::nullopt;
    int value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{}) return std::nullopt;
    return value;
}

std::optional<unsigned> readHex(const fs::path& path) {
    const auto text = readSmall(path);
    if (!text) return std::nullopt;
    std::string_view digits = *text;
    if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
    unsigned value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

std::vector<std::string> listNames(const fs::path& directory) {
    constexpr std::size_t kMost = 65536;
    std::vector<std::string> names;
    std::error_code error;
    fs::directory_iterator it(directory, error);
    for (; !error && it != fs::directory_iterator() && names.size() < kMost; it.increment(error))
        names.push_back(it->path().filename().string());
    std::ranges::sort(names);
    return names;
}

std::optional<fs::path> resolved(const fs::path& path) {
    std::error_code error;
    fs::path out = fs::canonical(path, error);
    if (error) return std::nullopt;
    return out;
}

std::string linkName(const fs::path& path) {
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    return error ? std::string() : target.filename().string();
}

std::vector<PciAddress> pciComponents(const fs::path& path) {
    std::vector<PciAddress> out;
    for (const fs::path& part : path) {
        const std::string name = part.string();
        // "DOMAIN:BUS:DEVICE.FUNCTION" only: two colons, so that a time stamp or a port is none.
        if (std::ranges::count(name, ':') != 2) continue;
        if (const auto address = PciAddress::parse(name)) out.push_back(*address);
    }
    return out;
}

}  // namespace rdmatune
