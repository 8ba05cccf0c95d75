// Ownership of a hwloc topology. Only for the .cpp files that include hwloc.
#pragma once

#include <hwloc.h>

#include "tuner/base/cpu_set.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

/// A topology that is destroyed with its holder; get() is null when there was no memory.
class HwlocHandle {
  public:
    HwlocHandle() {
        if (hwloc_topology_init(&topology_) != 0) topology_ = nullptr;
    }
    ~HwlocHandle() {
        if (topology_ != nullptr) hwloc_topology_destroy(topology_);
    }
    HwlocHandle(const HwlocHandle&) = delete;
    HwlocHandle& operator=(const HwlocHandle&) = delete;

    [[nodiscard]] hwloc_topology_t get() const { return topology_; }

  private:
    hwloc_topology_t topology_ = nullptr;
};

/// A bitmap as a CpuSet. Infinite bitmaps (not a set of real CPUs) become the empty set.
[[nodiscard]] inline CpuSet toCpuSet(hwloc_const_bitmap_t bitmap) {
    CpuSet out;
    if (bitmap == nullptr || hwloc_bitmap_weight(bitmap) < 0) return out;
    for (int cpu = hwloc_bitmap_first(bitmap); cpu >= 0; cpu = hwloc_bitmap_next(bitmap, cpu))
        out.add(cpu);
    return out;
}

/// OS number of the package an object is in, -1 when it is in none or in several.
[[nodiscard]] inline int packageOf(hwloc_topology_t topology, hwloc_obj_t object) {
    const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object);
    return package == nullptr ? -1 : static_cast<int>(package->os_index);
}

/// The NUMA nodes that have CPUs, and all CPUs, allowed to this process or not. Memory without
/// CPUs (a GPU's own, HBM, CXL) is no place to put a task.
void copyCores(hwloc_topology_t topology, Node& node);

}  // namespace rdmatune
