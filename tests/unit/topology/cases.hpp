// Where the saved machines for tests are.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tuner/topology/read.hpp"

namespace rdmatune::testing {

/// The nearest folder `relative` at or above the current one; empty when there is none.
inline std::filesystem::path findUpwards(const std::filesystem::path& relative) {
    for (auto at = std::filesystem::current_path();; at = at.parent_path()) {
        if (std::filesystem::exists(at / relative)) return at / relative;
        if (at == at.parent_path()) return {};
    }
}

/// Saved machines that come with the project.
inline std::filesystem::path fixtures() {
    return findUpwards("tests/fixtures/topology");
}

/// Saved machines from public places, kept outside the project: $RDMA_TUNE_CASES or shared/cases
/// beside it. Empty when they are not there.
inline std::filesystem::path cases() {
    if (const char* given = std::getenv("RDMA_TUNE_CASES")) return given;
    return findUpwards("shared/cases");
}

/// All files below, in the order of their names.
inline std::vector<std::filesystem::path> filesIn(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    if (folder.empty()) return files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

/// Reads a saved machine that must be readable.
inline Node mustRead(const std::filesystem::path& file) {
    const Result<Node> node = readTopologyFile(file.string());
    EXPECT_TRUE(node.ok()) << node.error().message;
    return node.ok() ? *node : Node{};
}

inline Node fixture(const std::string& name) {
    return mustRead(fixtures() / name);
}

/// The distance from the GPU in place `gpu` to the HCA called `label`.
inline std::string distanceTo(const Node& node, std::size_t gpu, const std::string& label) {
    for (std::size_t h = 0; h < node.hcas.size(); ++h)
        if (node.hcas[h].label() == label) return std::string(toString(node.distance[gpu][h]));
    return "no " + label;
}

/// Labels of the HCAs that are nearest to a GPU, in the node's order.
inline std::vector<std::string> nearest(const Node& node, std::size_t gpu) {
    std::vector<std::string> labels;
    Distance best = Distance::Unknown;
    for (const Distance distance : node.distance[gpu]) best = std::min(best, distance);
    for (std::size_t h = 0; h < node.hcas.size(); ++h)
        if (node.distance[gpu][h] == best) labels.push_back(node.hcas[h].label());
    return labels;
}

inline const Hca& hcaNamed(const Node& node, const std::string& label) {
    for (const Hca& hca : node.hcas)
        if (hca.label() == label) return hca;
    static const Hca kNone{};
    ADD_FAILURE() << "no HCA " << label;
    return kNone;
}

/// Whether a note has `part` in it.
inline bool noted(const Node& node, const std::string& part) {
    for (const std::string& note : node.notes)
        if (note.find(part) != std::string::npos) return true;
    return false;
}

}  // namespace rdmatune::testing
