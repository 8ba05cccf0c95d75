// The node report: what `rdma-tune node` prints once for a step and `rdma-tune task` reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/result.hpp"
#include "tuner/binding/plan.hpp"
#include "tuner/gpudirect/finding.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

struct NodeReport {
    Node node;
    PlanRequest request;  ///< what `plan` was made from, to plan again when a task sees other GPUs
    Plan plan;
    Diagnosis diagnosis;
    std::string tuner;  ///< absolute path of NCCL's tuner plugin; empty: not found
};

/// {"version":1,"node":{...},"request":{...},"plan":{...},"diagnosis":{...},"tuner":"..."}
[[nodiscard]] std::string reportToJson(const NodeReport& report);
/// Refuses another version and anything that is not a report, naming the part that is wrong.
[[nodiscard]] Result<NodeReport> reportFromJson(std::string_view json);

/// The standard input of `rdma-tune task`: sections "NAME LENGTH\\n" + LENGTH bytes, closed by "end
/// 0\\n".
struct TaskInput {
    std::vector<std::string> env;  ///< NAME=VALUE
    std::string report;
};
[[nodiscard]] Result<TaskInput> parseTaskInput(std::string_view bytes);

}  // namespace rdmatune
