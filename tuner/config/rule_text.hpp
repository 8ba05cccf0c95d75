// Rules as a site writes them in rdma-tune.conf, and their compact form for the profile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/result.hpp"

namespace rdmatune {

/// One rule, `collective=allreduce bytes=0-64K nodes=2-4 algorithm=tree protocol=ll`, in its
/// compact form.
///
/// Keys, each at most once, in any order, separated by blanks:
///   collective  allreduce, allgather, reducescatter, broadcast, reduce; default: all
///   bytes       the whole message: SIZE, FROM-TO, FROM- (K, M, G: powers of 1024); default: all
///   nodes       of the communicator: N, FROM-TO, FROM-; default: all
///   algorithm   tree, ring, nvls, nvlstree, collnetdirect, collnetchain, pat; nccl: leave the
///   choice to NCCL protocol    ll (up to 256K only), ll128, simple
/// At least one of algorithm and protocol is needed. Anything else is an error that says what was
/// expected.
[[nodiscard]] Result<std::string> compileRule(std::string_view rule);

/// All rules, in their order, as FabricProfile::rules. `origins` ("FILE:LINE", one per rule, or
/// empty) begin the error messages. Also an error: more rules than a profile can carry.
[[nodiscard]] Result<std::string> compileRules(const std::vector<std::string>& rules,
                                               const std::vector<std::string>& origins);

/// The compact form for people, one rule per element: "allreduce, 0 to 64K, 2 to 4 nodes: tree,
/// ll".
[[nodiscard]] std::vector<std::string> describeRules(std::string_view compact);

}  // namespace rdmatune
