#include "tuner/topology/sys_gpu.hpp"

#include <filesystem>
#include <map>

#include "tuner/base/text.hpp"
#include "tuner/topology/pci_kind.hpp"
#include "tuner/topology/sys_files.hpp"

namespace rdmatune {
namespace fs = std::filesystem;
namespace {

/// /proc/driver/nvidia/gpus/*/information, which the driver writes as "Key: \t value" lines.
struct NvidiaInformation {
    std::optional<std::string> uuid;
    std::optional<int> minor;
    std::string model;
};

std::map<PciAddress, NvidiaInformation> readNvidiaInformation(const fs::path& proc) {
    std::map<PciAddress, NvidiaInformation> all;
    const fs::path gpus = proc / "driver/nvidia/gpus";
    for (const std::string& name : listNames(gpus)) {
        const auto address = PciAddress::parse(name);
        const auto text = readSmall(gpus / name / "information");
        if (!address || !text) continue;
        NvidiaInformation information;
        for (const auto line : split(*text, '\n')) {
            const auto colon = line.find(':');
            if (colon == std::string_view::npos) continue;
            const auto key = trim(line.substr(0, colon));
            const auto value = trim(line.substr(colon + 1));
            if (key == "Model") information.model = printable(value);
            if (key == "Device Minor") information.minor = parseInt<int>(value);
            // Question marks until something has opened the device for the first time.
            if (key == "GPU UUID" && value.starts_with("GPU-") &&
                value.find('?') == std::string_view::npos)
                information.uuid = printable(value);
        }
        all.emplace(*address, std::move(information));
    }
    return all;
}

/// The number after `prefix` in a name such as gi3; nothing for other names.
std::optional<int> numberAfter(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    return parseInt<int>(name.substr(prefix.size()));
}

/// MIG instances in the form MIG-GPU-<uuid>/<gpu instance>/<compute instance>, which CUDA accepts
/// (MIG user guide, "CUDA device enumeration"); the newer MIG-<uuid> form is known only to NVML.
std::vector<std::string> readMig(const fs::path& proc, const Gpu& gpu) {
    std::vector<std::string> instances;
    if (!gpu.minor || !gpu.uuid) return instances;
    const fs::path mig =
        proc / "driver/nvidia/capabilities" / ("gpu" + std::to_string(*gpu.minor)) / "mig";
    for (const std::string& gi : listNames(mig))
        if (const auto gi_number = numberAfter(gi, "gi"))
            for (const std::string& ci : listNames(mig / gi))
                if (const auto ci_number = numberAfter(ci, "ci"))
                    instances.push_back("MIG-" + *gpu.uuid + '/' + std::to_string(*gi_number) +
                                        '/' + std::to_string(*ci_number));
    return instances;
}

/// N of the function's /dev/dri/renderD(128+N).
std::optional<int> renderMinor(const fs::path& directory) {
    constexpr int kFirstRenderNode = 128;
    for (const std::string& name : listNames(directory / "drm"))
        if (const auto number = numberAfter(name, "renderD"); number && *number >= kFirstRenderNode)
            return *number - kFirstRenderNode;
    return std::nullopt;
}

}  // namespace

void readGpus(const SystemRoots& roots, const PciFunctions& functions, Node& node) {
    const auto nvidia = readNvidiaInformation(roots.proc);
    for (const auto& [address, function] : functions) {
        if (!isComputeGpu(function.vendor, function.pci_class)) continue;
        Gpu gpu;
        gpu.pci = address;
        gpu.vendor = gpuVendor(function.vendor);
        gpu.numa = function.numa;
        gpu.cpus = function.local_cpus;
        gpu.pci_path = function.path;
        gpu.link = readPcieLink(function.directory);
        if (const auto it = nvidia.find(address); it != nvidia.end()) {
            gpu.uuid = it->second.uuid;
            gpu.minor = it->second.minor;
            gpu.model = it->second.model;
            gpu.mig = readMig(roots.proc, gpu);
        } else if (gpu.vendor != "nvidia") {
            gpu.minor = renderMinor(function.directory);
            gpu.model = printable(readSmall(function.directory / "product_name").value_or(""));
            // amdgpu's unique_id is what ROCm calls GPU-<id>.
            if (const auto id = readSmall(function.directory / "unique_id"); id && !id->empty())
                gpu.uuid = "GPU-" + printable(*id);
        }
        node.gpus.push_back(std::move(gpu));
    }
}

}  // namespace rdmatune
