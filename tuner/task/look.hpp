// What the running process really has: devices it can open, CPUs, memory it may lock, files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/base/cpu_set.hpp"
#include "tuner/task/gpu_view.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

/// GPUs whose device file under `dev` this process can open, as indexes. Nothing when that cannot
/// be known: a GPU without minor, or a saved topology on a machine without any of the files. Only a
/// refusal or a missing file counts against a GPU; a busy or broken device is still this task's.
[[nodiscard]] std::optional<std::vector<int>> openableGpus(const Node& node,
                                                           const std::string& dev = "/dev");

/// This thread's affinity.
[[nodiscard]] CpuSet currentAffinity();
/// What the cpuset allows at most, whatever the affinity is: asks for all CPUs, looks, and goes
/// back.
[[nodiscard]] CpuSet cpusetLimit();
/// False when the kernel refuses.
[[nodiscard]] bool setAffinity(const CpuSet& cpus);

/// The CPUs a task may be given. `cpuset`, unless it is the whole machine although Slurm gave the
/// step only a part (SLURM_CPUS_ON_NODE): then other jobs may run on the rest, and only the
/// affinity that Slurm set is known to be ours.
[[nodiscard]] CpuSet permittedCpus(const CpuSet& affinity, const CpuSet& cpuset, int online,
                                   const Environment& env);
[[nodiscard]] int onlineCpus();

/// Memory that this process may lock, bytes; nothing when unlimited, or when CAP_IPC_LOCK lifts the
/// limit.
[[nodiscard]] std::optional<std::uint64_t> memlockLimit();

/// The first libnccl-net.so in LD_LIBRARY_PATH; empty: none.
[[nodiscard]] std::string netPluginOnPath(const Environment& env);

[[nodiscard]] bool isReadableFile(const std::string& path);

}  // namespace rdmatune
