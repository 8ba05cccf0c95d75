// The saved forms that read.cpp tells apart. `name` is the file's, for messages.
#pragma once

#include <string>
#include <string_view>

#include "tuner/base/result.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

/// XML that hwloc (lstopo) exported, version 1 or 2.
[[nodiscard]] Result<Node> readHwlocXml(std::string_view text, const std::string& name);

/// XML as NCCL reads (NCCL_TOPO_FILE) and writes (NCCL_TOPO_DUMP_FILE), RCCL's dialect included.
[[nodiscard]] Result<Node> readNcclXml(std::string_view text, const std::string& name);

/// What `nvidia-smi topo -m` prints, as people paste it.
[[nodiscard]] Result<Node> readTopoMatrix(std::string_view text, const std::string& name);

}  // namespace rdmatune
