// What every reader does last: order, indices, NUMA particulars, distances, notes.
#pragma once

#include <set>
#include <string>

#include "tuner/topology/distance.hpp"
#include "tuner/topology/node.hpp"

namespace rdmatune {

/// Puts a Node whose devices, bridges and NUMA nodes were collected into the form that node.hpp
/// promises. Fills a GPU's CPUs and both kinds' packages from their NUMA node where the reader
/// did not know them, keeps only bridges that lead to a GPU or an HCA, computes the distances,
/// and sets `flat` for a virtual machine that shows no switch between any GPU and HCA.
void completeNode(Node& node, PathForm form, bool virtual_machine);

/// Gives each HCA of `virtual_functions` the physical function it belongs to: the nearest one
/// before it on the same card. Where there is none (a virtual machine) it stands alone.
void linkVirtualFunctions(Node& node, const std::set<PciAddress>& virtual_functions);

/// The note on a virtual machine that hides its PCIe tree.
[[nodiscard]] std::string flatMachineNote();

/// Sets node.flat and its note when there are GPUs and HCAs and the distances tell nothing.
void noteFlat(Node& node, bool virtual_machine);

}  // namespace rdmatune
