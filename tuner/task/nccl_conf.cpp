#include "tuner/task/nccl_conf.hpp"

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

NcclConf readNcclConf(const Environment& env, const std::string& etc) {
    NcclConf out;
    std::vector<std::string> candidates;
    if (const std::string* file = lookUp(env, "NCCL_CONF_FILE"); file != nullptr && !file->empty())
        candidates.push_back(*file);
    else if (const std::string* home = lookUp(env, "HOME"); home != nullptr && !home->empty())
        candidates.push_back(*home + "/.nccl.conf");
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
