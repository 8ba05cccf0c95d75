// A node, a plan and the facts of one task, for the tests of this room.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/support/node_builder.hpp"
#include "tuner/binding/plan.hpp"
#include "tuner/task/gpu_view.hpp"
#include "tuner/task/task.hpp"

namespace rdmatune::testing {

/// 4 GPUs, each beside its own HCA, 16 CPUs on two NUMA nodes.
inline Node fourGpus() {
    NodeBuilder builder;
    builder.numa(0, "0-7").numa(1, "8-15").gpus(2, "0-7", 0).gpus(2, "8-15", 1);
    for (int i = 0; i < 4; ++i) builder.hca("mlx5_" + std::to_string(i));
    for (int i = 0; i < 4; ++i) builder.near(i, i, Distance::Pix);
    return builder.build();
}

inline Plan planFor(const Node& node, int tasks, std::optional<std::vector<int>> gpus = {}) {
    PlanRequest request;
    request.local_tasks = tasks;
    request.gpus = std::move(gpus);
    auto plan = makePlan(node, request);
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    return plan.ok() ? *plan : Plan{};
}

inline TaskFacts facts(int local_rank, int local_tasks, Environment env = {}) {
    TaskFacts out;
    out.local_rank = local_rank;
    out.local_tasks = local_tasks;
    out.env = std::move(env);
    out.affinity.addRange(0, 15);
    out.permitted = out.affinity;
    return out;
}

/// What Slurm sets in a step that has GPUs `step` and shows `visible`.
inline Environment slurm(const std::string& step, const std::string& visible) {
    return {{"SLURM_JOB_ID", "7"},
            {"SLURM_STEP_GPUS", step},
            {"CUDA_VISIBLE_DEVICES", visible},
            {"GPU_DEVICE_ORDINAL", visible}};
}

inline const Setting* find(const TaskOutcome& outcome, const std::string& name) {
    for (const Setting& setting : outcome.settings)
        if (setting.name == name) return &setting;
    return nullptr;
}

/// The value a variable will have: what was set, or what was kept.
inline std::string valueOf(const TaskOutcome& outcome, const std::string& name) {
    const Setting* setting = find(outcome, name);
    return setting == nullptr ? "(untouched)" : setting->value;
}

inline bool wasSet(const TaskOutcome& outcome, const std::string& name) {
    const Setting* setting = find(outcome, name);
    return setting != nullptr && setting->action == Setting::Action::Set;
}

}  // namespace rdmatune::testing
