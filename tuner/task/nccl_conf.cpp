#include "tuner/task/nccl_conf.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tuner/base/text.hpp"

namespace rdmatune {

void readNcclConfText(std::string_view text, std::map<std::string, std::string>& values) {
    for (const auto line : split(text, '\n')) {
        const auto equals = line.find('=');
        if (line.starts_with('#') || equals == std::string_view::npos) continue;
        const auto name = trim(line.substr(0, equals));
        if (!name.empty()) values.try_emplace(std::string(name), trim(line.substr(equals + 1)));
    }
}

namespace {

/// The home folder that NCCL looks in: the one of the password database, whatever HOME says. Read
/// as a file, because name services need shared libraries that a static program does not have.
std::string homeInPasswd(const std::string& etc) {
    std::ifstream file(etc + "/passwd");
    const std::string uid = std::to_string(::getuid());
    for (std::string line; std::getline(file, line);) {
        const auto fields = split(line, ':');  // name:password:uid:gid:comment:home:shell
        constexpr std::size_t kFields = 7;
        if (fields.size() == kFields && fields[2] == uid) return std::string(fields[5]);
    }
    return {};
}

}  // namespace

NcclConf readNcclConf(const Environment& env, const std::string& etc) {
    NcclConf out;
    std::vector<std::string> candidates;
    if (const std::string* file = lookUp(env, "NCCL_CONF_FILE"); file != nullptr && !file->empty())
        candidates.push_back(*file);
    else {
        const std::string real = homeInPasswd(etc);
        if (!real.empty()) candidates.push_back(real + "/.nccl.conf");
        if (const std::string* home = lookUp(env, "HOME");
            home != nullptr && !home->empty() && *home != real)
            candidates.push_back(*home + "/.nccl.conf");
    }
    candidates.push_back(etc + "/nccl.conf");
    constexpr std::uintmax_t kMaxBytes = 1 << 20;
    for (const std::string& path : candidates) {
        std::error_code failed;
        if (!std::filesystem::is_regular_file(path, failed)) continue;
        const auto size = std::filesystem::file_size(path, failed);
        if (failed || size > kMaxBytes) continue;
        const std::ifstream file(path);
        if (!file) continue;
        std::ostringstream text;
        text << file.rdbuf();
        readNcclConfText(text.str(), out.values);
        out.files.push_back(path);
    }
    return out;
}

}  // namespace rdmatune
