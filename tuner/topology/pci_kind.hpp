// What a PCI function is, told from its vendor and class alone: no driver needs to be loaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rdmatune {

/// "nvidia", "amd", "intel"; empty for any other vendor.
[[nodiscard]] std::string gpuVendor(std::uint32_t vendor);

/// Whether a function is a GPU to compute on. `pci_class` is class and subclass (0x0302).
/// NVIDIA: VGA (0x0300) or 3D (0x0302) controllers. AMD and Intel: 3D, display (0x0380, where
/// Instinct and Data Center GPU Max cards are) or processing accelerators (0x1200); their VGA
/// functions are the graphics of a desktop or a processor. The VGA chips of management
/// controllers (ASPEED, Matrox) have other vendors.
[[nodiscard]] bool isComputeGpu(std::uint32_t vendor, std::uint32_t pci_class);

/// PCI-to-PCI bridge: a root port or a port of a switch.
[[nodiscard]] bool isPciBridge(std::uint32_t pci_class);

/// Any network controller, InfiniBand (0x0207) and fabric controllers (0x0208) included.
[[nodiscard]] bool isNetwork(std::uint32_t pci_class);

/// HPE Slingshot (Cassini) and the like: high-speed NICs that have no verbs interface.
[[nodiscard]] bool isNonVerbsFabricNic(std::uint32_t vendor);

/// What a note says of `count` such NICs.
[[nodiscard]] std::string slingshotNote(int count);

/// Whether these are the numbers of a virtual function of an RDMA NIC, by the public list of PCI
/// IDs. False also where a card gives its virtual functions the physical one's number.
[[nodiscard]] bool isVirtualFunction(std::uint32_t vendor, std::uint32_t device);

/// "vvvv:dddd", lower-case hexadecimal.
[[nodiscard]] std::string vendorDevice(std::uint32_t vendor, std::uint32_t device);

/// Whether DMI's system vendor and product name are a virtual machine's. Bare-metal instances of
/// clouds have the cloud's vendor and another product.
[[nodiscard]] bool looksVirtual(std::string_view vendor, std::string_view product);

/// Text from a device, a file or a driver made fit for a terminal, a log and JSON: control
/// characters and bytes above 7e become '?', blanks around it go, and it ends after 255 bytes.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace rdmatune
