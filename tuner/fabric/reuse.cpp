#include "tuner/fabric/reuse.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>

#include "tuner/fabric/handshake.hpp"
#include "tuner/fabric/socket.hpp"

namespace rdmatune::fabric {
namespace {

constexpr std::string_view kPrefix = "measured-";
constexpr std::size_t kLargest = 256 * 1024;
constexpr std::time_t kWeek = 7 * 24 * 3600;

std::string headerOf(const ReuseKey& key) {
    return "rdma-tune-kept/1 " + key.version + " " + key.cluster + " " + key.job + " " +
           key.restart + " " + key.hosts + "\n";
}

Error system(const std::string& path, const char* what) {
    return Error{path + ": " + what + ": " + std::strerror(errno)};
}

/// Empty when the file is private and ours.
std::string whyNotPrivate(int fd, mode_t kind) {
    struct stat facts {};
    if (fstat(fd, &facts) != 0) return std::strerror(errno);
    if ((facts.st_mode & S_IFMT) != kind)
        return kind == S_IFDIR ? "is not a directory" : "is not a regular file";
    if (facts.st_uid != geteuid()) return "belongs to another user";
    if ((facts.st_mode & 077) != 0) return "is accessible to others";
    if (kind == S_IFREG && facts.st_nlink != 1) return "has more than one name";
    return {};
}

Result<Fd> openDirectory(const std::string& path, bool create) {
    if (create && mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
        return system(path, "cannot be made");
    Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return system(path, "cannot be opened as a directory of this user");
    if (const std::string why = whyNotPrivate(fd.get(), S_IFDIR); !why.empty())
        return Error{path + " " + why + "; remove it"};
    return fd;
}

void removeOld(int directory) {
    const int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy < 0) return;
    const std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(copy), closedir);
    if (!list) {
        close(copy);
        return;
    }
    const std::time_t limit = std::time(nullptr) - kWeek;
    while (const dirent* entry = readdir(list.get())) {
        struct stat facts {};
        if (!std::string_view(entry->d_name).starts_with(kPrefix)) continue;
        if (fstatat(directory, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            facts.st_mtime < limit)
            unlinkat(directory, entry->d_name, 0);
    }
}

}  // namespace

std::string ReuseStore::directory() const {
    return root_ + "/rdma-tune-" + std::to_string(geteuid());
}

std::string ReuseStore::fileName(const ReuseKey& key) {
    std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a; the header in the file decides
    for (const char c : headerOf(key))
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    char text[17];
    static constexpr char kDigits[] = "0123456789abcdef";
    for (int i = 0; i < 16; ++i) text[i] = kDigits[hash >> (60 - 4 * i) & 15];
    text[16] = '\0';
    return std::string(kPrefix) + text;
}

Result<std::string> ReuseStore::load(const ReuseKey& key) const {
    const Result<Fd> folder = openDirectory(directory(), false);
    if (!folder) return folder.error();
    const std::string path = directory() + "/" + fileName(key);
    // Non-blocking: a pipe put there by mistake must not hang the job.
    const Fd file(openat(folder->get(), fileName(key).c_str(),
                         O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid()) return system(path, "cannot be opened");
    if (const std::string why = whyNotPrivate(file.get(), S_IFREG); !why.empty())
        return Error{path + " " + why};
    std::string text;
    char chunk[16384];
    for (;;) {
        const ssize_t got = read(file.get(), chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return system(path, "cannot be read");
        if (got == 0) break;
        text.append(chunk, static_cast<std::size_t>(got));
        if (text.size() > kLargest) return Error{path + " is too large to be ours"};
    }
    const std::string header = headerOf(key);
    if (!text.starts_with(header)) return Error{path + " was kept for another job"};
    return text.substr(header.size());
}

std::int64_t ReuseStore::savedAt(const ReuseKey& key) const {
    const Result<Fd> folder = openDirectory(directory(), false);
    struct stat status {};
    if (!folder || fstatat(folder->get(), fileName(key).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    return status.st_mtime;
}

Status ReuseStore::save(const ReuseKey& key, std::string_view text) const {
    const Result<Fd> folder = openDirectory(directory(), true);
    if (!folder) return folder.error();
    removeOld(folder->get());
    const std::string name = fileName(key);
    const std::string temporary = std::string(kPrefix) + makeCookie();
    const Fd file(openat(folder->get(), temporary.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) return system(directory() + "/" + temporary, "cannot be made");
    const std::string whole = headerOf(key) + std::string(text);
    std::size_t done = 0;
    while (done < whole.size()) {
        const ssize_t put = write(file.get(), whole.data() + done, whole.size() - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            const Error error = system(directory() + "/" + temporary, "cannot be written");
            unlinkat(folder->get(), temporary.c_str(), 0);
            return error;
        }
        done += static_cast<std::size_t>(put);
    }
    if (renameat(folder->get(), temporary.c_str(), folder->get(), name.c_str()) != 0) {
        const Error error = system(directory() + "/" + name, "cannot be put in place");
        unlinkat(folder->get(), temporary.c_str(), 0);
        return error;
    }
    return Done{};
}

}  // namespace rdmatune::fabric
