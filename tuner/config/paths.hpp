// Where the installed parts are, when the site does not say.
#pragma once

#include <string>

#include "tuner/base/result.hpp"
#include "tuner/config/options.hpp"

namespace rdmatune {

/// Directory-by-directory upwards from `beside` (the file of the running plugin or program), then
/// /usr/local and /usr: the first existing bin/rdma-tune. Empty when there is none.
[[nodiscard]] std::string findProgram(const std::string& beside);
/// The same for lib/libnccl-tuner-rdmatune.so, lib/<any> of the plugin's own folder first.
[[nodiscard]] std::string findTuner(const std::string& beside);

/// Whether a program may be started on the user's behalf by a daemon: absolute path, an executable
/// regular file, and neither it nor the folder it is in writable by anybody but root or `owner`.
[[nodiscard]] Status checkProgram(const std::string& path, unsigned owner);

}  // namespace rdmatune
