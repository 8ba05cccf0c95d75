// A profile measured once in an allocation, kept for its later steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tuner/base/result.hpp"

namespace rdmatune::fabric {

/// What a kept profile is valid for; all of it must be equal.
struct ReuseKey {
    std::string cluster;
    std::string job;
    std::string restart;  ///< SLURM_RESTART_COUNT: a requeued job may get other nodes
    std::string hosts;    ///< the step's nodes, in order
    std::string version;  ///< of rdma-tune
};

/// Profiles kept in `root`/rdma-tune-UID, a directory of mode 0700 that must belong to this user
/// and be no symbolic link. Files have mode 0600, are never followed through links, are written
/// under another name first, and those older than a week are removed.
class ReuseStore {
  public:
    explicit ReuseStore(std::string root = "/tmp") : root_(std::move(root)) {}

    /// The text kept for this key. An error says why there is none: not there, not private, not
    /// ours.
    [[nodiscard]] Result<std::string> load(const ReuseKey& key) const;
    /// When this key's text was kept, seconds since the epoch; 0 when there is none.
    [[nodiscard]] std::int64_t savedAt(const ReuseKey& key) const;
    [[nodiscard]] Status save(const ReuseKey& key, std::string_view text) const;
    [[nodiscard]] std::string directory() const;
    [[nodiscard]] static std::string fileName(const ReuseKey& key);

  private:
    std::string root_;
};

}  // namespace rdmatune::fabric
