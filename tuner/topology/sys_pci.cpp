#include "tuner/topology/sys_pci.hpp"

#include <algorithm>

#include "tuner/base/text.hpp"
#include "tuner/topology/pci_kind.hpp"
#include "tuner/topology/sys_files.hpp"

namespace rdmatune {
namespace {

/// A width that PCIe knows; a vanished device reads as 63 or 255 lanes.
int plausibleWidth(std::optional<int> width) {
    return width && *width >= 1 && *width <= 32 ? *width : 0;
}

}  // namespace

double parseLinkSpeed(std::string_view text) {
    const std::string_view number = trim(text).substr(0, trim(text).find(' '));
    const auto value = parseReal(number);
    // 1024 GT/s is far above any PCIe generation: what is larger is no speed.
    return value && *value > 0 && *value <= 1024 ? *value : 0;
}

PcieLink readPcieLink(const std::filesystem::path& directory) {
    PcieLink link;
    link.speed_gts = parseLinkSpeed(readSmall(directory / "current_link_speed").value_or(""));
    link.max_speed_gts = parseLinkSpeed(readSmall(directory / "max_link_speed").value_or(""));
    link.width = plausibleWidth(readNumber(directory / "current_link_width"));
    link.max_width = plausibleWidth(readNumber(directory / "max_link_width"));
    return link;
}

PciFunctions scanPci(const std::filesystem::path& sys) {
    PciFunctions functions;
    const std::filesystem::path devices = sys / "bus/pci/devices";
    for (const std::string& name : listNames(devices)) {
        const auto address = PciAddress::parse(name);
        if (!address) continue;
        const std::filesystem::path directory = resolved(devices / name).value_or(devices / name);
        const auto full_class = readHex(directory / "class");
        if (!full_class) continue;
        PciFunction function;
        function.address = *address;
        function.directory = directory;
        function.pci_class = *full_class >> 8;  // the lowest byte is the programming interface
        function.vendor = readHex(directory / "vendor").value_or(0);
        function.device = readHex(directory / "device").value_or(0);
        function.numa = std::max(-1, readNumber(directory / "numa_node").value_or(-1));
        function.local_cpus =
            CpuSet::parse(readSmall(directory / "local_cpulist", 65536).value_or(""))
                .value_or(CpuSet{});
        function.path = pciComponents(directory);
        // The tree above the root bus may itself contain addresses (VMD): only bridges count, and
        // they are checked when all functions are known. The function itself comes last.
        if (!function.path.empty() && function.path.back() == *address) function.path.pop_back();
        functions.emplace(*address, std::move(function));
    }
    for (auto& [address, function] : functions)
        std::erase_if(function.path, [&](const PciAddress& above) {
            const auto it = functions.find(above);
            return it == functions.end() || !isPciBridge(it->second.pci_class);
        });
    return functions;
}

}  // namespace rdmatune
