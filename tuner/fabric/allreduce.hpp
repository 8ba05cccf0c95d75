// One node's part of an allreduce by ring or by tree, as state machines that never wait.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tuner/base/result.hpp"
#include "tuner/fabric/collective.hpp"

namespace rdmatune::fabric {

/// A part of the data on its way over one set of links. The sums are formed in place.
class Allreduce {
  public:
    virtual ~Allreduce() = default;
    /// Does what can be done now; true when something moved.
    [[nodiscard]] virtual Result<bool> advance() = 0;
    /// Everything has been received, and everything posted has left.
    [[nodiscard]] virtual bool done() const = 0;
};

/// Ring allreduce: 2 (nodes - 1) steps; each rail carries an equal part of the data. `links` and
/// `data` must outlive the parts.
[[nodiscard]] std::vector<std::unique_ptr<Allreduce>> ringParts(const CollectiveLinks& links,
                                                                std::span<float> data);

/// Double binary tree: half of the data is reduced up and broadcast down each tree; each rail
/// carries an equal part of that.
[[nodiscard]] std::vector<std::unique_ptr<Allreduce>> treeParts(const CollectiveLinks& links,
                                                                std::span<float> data);

}  // namespace rdmatune::fabric
