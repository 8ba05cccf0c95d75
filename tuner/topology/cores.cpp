#include "tuner/topology/cores.hpp"

#include <hwloc.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "tuner/base/text.hpp"
#include "tuner/topology/sys_files.hpp"

namespace rdmatune {
namespace fs = std::filesystem;
namespace {

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
[[nodiscard]] CpuSet toCpuSet(hwloc_const_bitmap_t bitmap) {
    CpuSet out;
    if (bitmap == nullptr || hwloc_bitmap_weight(bitmap) < 0) return out;
    for (int cpu = hwloc_bitmap_first(bitmap); cpu >= 0; cpu = hwloc_bitmap_next(bitmap, cpu))
        out.add(cpu);
    return out;
}

/// OS number of the package an object is in, -1 when it is in none or in several.
[[nodiscard]] int packageOf(hwloc_topology_t topology, hwloc_obj_t object) {
    const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object);
    return package == nullptr ? -1 : static_cast<int>(package->os_index);
}

/// The NUMA nodes that have CPUs, and all CPUs, allowed to this process or not. Memory without
/// CPUs (a GPU's own, HBM, CXL) is no place to put a task.
void copyCores(hwloc_topology_t topology, Node& node) {
    node.cpus = toCpuSet(hwloc_topology_get_complete_cpuset(topology));
    const int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    for (int i = 0; i < count; ++i) {
        const hwloc_obj_t object =
            hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
        NumaNode numa;
        numa.os_index = static_cast<int>(object->os_index);
        numa.package = packageOf(topology, object);
        numa.cpus = toCpuSet(object->complete_cpuset);
        if (!numa.cpus.empty()) node.numa.push_back(std::move(numa));
    }
}

}  // namespace

Status readCoresWithHwloc(Node& node) {
    const HwlocHandle handle;
    const hwloc_topology_t topology = handle.get();
    if (topology == nullptr) return Error{"hwloc cannot start: out of memory"};
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    // GPUs and HCAs come from /sys (see live.cpp). Left to itself hwloc would also ask CUDA, NVML,
    // ROCm and OpenCL, which can take seconds or hang on a sick driver.
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(topology) != 0)
        return Error{std::string("hwloc cannot read this machine: ") + std::strerror(errno) +
                     "; `lstopo` should say more"};
    if (hwloc_topology_is_thissystem(topology) == 0) {
        node.notes.emplace_back(
            "hwloc's environment (HWLOC_XMLFILE or HWLOC_SYNTHETIC) describes another machine and "
            "is not used; --topology FILE is the way to plan for one.");
        return Done{};
    }
    copyCores(topology, node);
    return Done{};
}

void readCoresFromSys(const fs::path& sys, Node& node) {
    const fs::path system = sys / "devices/system";
    for (const std::string& name : listNames(system / "node")) {
        if (!name.starts_with("node")) continue;
        const auto number = parseInt<int>(std::string_view(name).substr(4));
        if (!number || *number < 0) continue;
        const fs::path directory = system / "node" / name;
        auto cpus = CpuSet::parse(readSmall(directory / "cpulist", 65536).value_or(""));
        if (!cpus || cpus->empty())
            cpus = CpuSet::parseMask(readSmall(directory / "cpumap", 65536).value_or(""));
        if (!cpus || cpus->empty()) continue;
        NumaNode numa;
        numa.os_index = *number;
        numa.cpus = *cpus;
        const std::string first = "cpu" + std::to_string(cpus->list().front());
        numa.package =
            readNumber(system / "cpu" / first / "topology/physical_package_id").value_or(-1);
        node.numa.push_back(std::move(numa));
    }
    const auto online = CpuSet::parse(readSmall(system / "cpu/online", 65536).value_or(""));
    if (online) node.cpus = *online;
    for (const NumaNode& numa : node.numa) node.cpus = node.cpus | numa.cpus;
}

}  // namespace rdmatune
