// What was found out about GPUDirect RDMA and the node's health, with remedies.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/base/result.hpp"
#include "tuner/topology/node.hpp"
#include "tuner/topology/read.hpp"

namespace rdmatune {

enum class Severity { Info, Warning, Error };
[[nodiscard]] std::string_view toString(Severity severity);  ///< "info", "warning", "error"

/// One fact about the node. `code` is stable over releases (listed in docs/gpudirect.md).
struct Finding {
    std::string code;  ///< such as "peermem-missing", "acs-redirect", "memlock-low"
    Severity severity = Severity::Info;
    std::string what;   ///< one sentence with the device, file and value seen
    std::string user;   ///< what the user can do; empty: nothing
    std::string admin;  ///< what the admin can do; empty: nothing
    bool operator==(const Finding&) const = default;
};

enum class GdrWay { No, Dmabuf, Peermem, Unknown };
[[nodiscard]] std::string_view toString(GdrWay way);  ///< "no", "dmabuf", "peermem", "unknown"

/// Whether one HCA reaches one GPU's memory.
struct GdrPair {
    int gpu = 0;
    int hca = 0;
    GdrWay way = GdrWay::Unknown;
    std::string because;  ///< for No and Unknown: the code of the finding that decides it
    bool operator==(const GdrPair&) const = default;
};

/// Everything `rdma-tune doctor` knows of a node.
struct Diagnosis {
    std::vector<Finding> findings;
    std::vector<GdrPair>
        pairs;  ///< every GPU with every usable HCA within NCCL's reach, and its own
    /// What the findings ask NCCL to be told (NCCL_NET_GDR_LEVEL, NCCL_DMABUF_ENABLE and kin),
    /// each with its reason; empty on a healthy node.
    struct Setting {
        std::string name, value, reason;
        bool operator==(const Setting&) const = default;
    };
    std::vector<Setting> env;
    bool operator==(const Diagnosis&) const = default;
};

/// Reads what is needed under `roots` and from this process (limits, what can be opened).
/// Never fails: what could not be seen is a finding of its own.
[[nodiscard]] Diagnosis diagnose(const Node& node, const SystemRoots& roots = {});

[[nodiscard]] std::string diagnosisToJson(const Diagnosis& diagnosis, const Node& node,
                                          int indent = -1);
/// Back from diagnosisToJson; `name` is used in messages.
[[nodiscard]] Result<Diagnosis> diagnosisFromJson(std::string_view json, const std::string& name);

}  // namespace rdmatune
