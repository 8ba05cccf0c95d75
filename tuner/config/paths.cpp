#include "tuner/config/paths.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace rdmatune {
namespace {

constexpr int kUpwards = 4;  // PREFIX/lib/x86_64-linux-gnu/slurm-wlm/PLUGIN is the deepest place

bool isFile(const std::string& path) {
    struct stat found {};
    return stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode);
}

std::string folderOf(const std::string& path) {
    return path.substr(0, path.find_last_of('/'));
}

std::string search(const std::string& beside, std::initializer_list<const char*> names) {
    std::string folder = beside.empty() || beside.front() != '/' ? std::string() : folderOf(beside);
    for (int level = 0; level < kUpwards && !folder.empty(); ++level, folder = folderOf(folder))
        for (const char* name : names)
            if (std::string path = folder + "/" + name; isFile(path)) return path;
    for (const char* prefix : {"/usr/local/", "/usr/"})
        for (const char* name : names)
            if (std::string path = std::string(prefix) + name; isFile(path)) return path;
    return {};
}

Status checkOwner(const std::string& path, const struct stat& found, unsigned owner) {
    if (found.st_uid != 0 && found.st_uid != owner)
        return Error{path + " belongs to user " + std::to_string(found.st_uid) +
                     "; expected root (chown root)"};
    // A sticky folder such as /tmp is writable by all, but what is in it is its owner's.
    const bool sticky_folder = S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0;
    if ((found.st_mode & S_IWOTH) != 0 && !sticky_folder)
        return Error{path + " can be written by anybody (chmod o-w)"};
    if ((found.st_mode & S_IWGRP) != 0 && found.st_gid != 0 && !sticky_folder)
        return Error{path + " can be written by group " + std::to_string(found.st_gid) +
                     " (chmod g-w)"};
    return Done{};
}

}  // namespace

std::string findProgram(const std::string& beside) {
    return search(beside, {"bin/rdma-tune"});
}

std::string findTuner(const std::string& beside) {
    return search(beside, {"lib/libnccl-tuner-rdmatune.so", "lib64/libnccl-tuner-rdmatune.so",
                           "libnccl-tuner-rdmatune.so"});
}

Status checkProgram(const std::string& path, unsigned owner) {
    if (path.empty() || path.front() != '/')
        return Error{"program '" + path + "': expected an absolute path"};
    struct stat found {};
    if (stat(path.c_str(), &found) != 0)
        return Error{"program " + path + ": " + std::strerror(errno) +
                     "; install rdma-tune on this node or set program= in plugstack.conf"};
    if (!S_ISREG(found.st_mode) || access(path.c_str(), X_OK) != 0)
        return Error{"program " + path + ": expected a file that may be executed"};
    if (Status status = checkOwner(path, found, owner); !status)
        return within("program refused", status.error());
    const std::string folder = folderOf(path).empty() ? "/" : folderOf(path);
    if (stat(folder.c_str(), &found) != 0)
        return Error{"program " + path + ": " + std::strerror(errno)};
    if (Status status = checkOwner(folder, found, owner); !status)
        return within("program refused", status.error());
    return Done{};
}

Result<Options> loadOptions() {
    const auto get = [](const char* name) { return std::getenv(name); };
    Options options;
    // The variable that names the file has to be known before the file is read.
    if (const char* config = get(variableName("config").c_str()))
        if (Status status = applyVariable(options, "config", config); !status)
            return status.error();
    if (Status status = applyFile(options, options.config); !status) return status.error();
    if (Status status = applyEnvironment(options, get); !status) return status.error();
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length > 0) {
        const std::string path(self, static_cast<std::size_t>(length));
        if (options.program.empty()) options.program = path;
        if (options.tuner.empty()) options.tuner = findTuner(path);
    }
    return options;
}

}  // namespace rdmatune
