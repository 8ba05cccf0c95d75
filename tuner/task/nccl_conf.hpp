// NCCL's own configuration files: what they set counts as set by the user or the site.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/task/gpu_view.hpp"

namespace rdmatune {

struct NcclConf {
    std::map<std::string, std::string> values;
    std::vector<std::string> files;  ///< the ones that were read
};

/// NAME=VALUE lines; lines that begin with # and lines without = are passed over, the first value
/// of a name wins, as in NCCL.
void readNcclConfText(std::string_view text, std::map<std::string, std::string>& values);

/// NCCL_CONF_FILE if the environment names one, else .nccl.conf in the home folder; then
/// `etc`/nccl.conf. Files that cannot be read, are no regular files or exceed 1 MiB are passed
/// over.
[[nodiscard]] NcclConf readNcclConf(const Environment& env, const std::string& etc = "/etc");

}  // namespace rdmatune
