// What a user should be told about one task before it starts; private to this room.
#pragma once

#include "tuner/task/gpu_view.hpp"
#include "tuner/task/task.hpp"

namespace rdmatune {

/// Below this, registering NCCL's buffers fails sooner or later. NCCL pins about 10 MiB for each
/// connection (0.5 MiB LL, 4.7 MiB LL128, 4 MiB Simple at the defaults) and opens two for each of
/// up to 32 channels: 640 MiB, rounded up. Public failures were at 64 KiB and 8 MiB (ucx#8229,
/// nccl-tests#206).
inline constexpr std::uint64_t kMemlockWanted = 1ULL << 30;

/// Adds warnings, and settings that are only worth a line in `verbose`.
void warnAboutTask(const Node& node, const Plan& plan, const GpuView& view, const TaskFacts& facts,
                   TaskOutcome& out);

}  // namespace rdmatune
