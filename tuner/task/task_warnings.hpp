// What a user should be told about one task before it starts; private to this room.
#pragma once

#include "tuner/task/gpu_view.hpp"
#include "tuner/task/task.hpp"

namespace rdmatune {

/// Below this many bytes, registering NCCL's buffers fails sooner or later: the doctor's limit for
/// one rank. NCCL pins about 10 MiB for each connection (its buffers for LL, LL128 and Simple at
/// the default sizes), two for each of up to 24 channels. Public failures were at 64 KiB and 8 MiB
/// (ucx#8229, nccl-tests#206).
inline constexpr std::uint64_t kMemlockWanted = 512ULL << 20;

/// Adds warnings, and settings that are only worth a line in `verbose`.
void warnAboutTask(const Node& node, const Plan& plan, const GpuView& view, const TaskFacts& facts,
                   TaskOutcome& out);

}  // namespace rdmatune
