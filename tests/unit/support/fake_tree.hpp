// A hand-made /sys, /proc and /dev in a temporary folder, removed with the object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tuner/topology/read.hpp"

namespace rdmatune::testing {

class FakeTree {
  public:
    FakeTree() {
        std::string name =
            (std::filesystem::temp_directory_path() / "rdma-tune-tree-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
        root_ = name;
        for (const char* folder : {"sys", "proc", "dev", "boot"})
            std::filesystem::create_directories(root_ / folder);
    }
    ~FakeTree() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }
    FakeTree(const FakeTree&) = delete;
    FakeTree& operator=(const FakeTree&) = delete;

    /// Writes a file, its folders included; `path` is relative ("sys/module/nvidia/version").
    FakeTree& file(const std::string& path, std::string_view content = "\n") {
        const auto full = root_ / path;
        std::filesystem::create_directories(full.parent_path());
        std::ofstream(full, std::ios::binary)
            .write(content.data(), static_cast<std::streamsize>(content.size()));
        return *this;
    }
    FakeTree& folder(const std::string& path) {
        std::filesystem::create_directories(root_ / path);
        return *this;
    }
    FakeTree& link(const std::string& path, const std::string& target) {
        const auto full = root_ / path;
        std::filesystem::create_directories(full.parent_path());
        std::filesystem::create_symlink(target, full);
        return *this;
    }

    [[nodiscard]] std::string path(const std::string& relative) const {
        return (root_ / relative).string();
    }
    [[nodiscard]] SystemRoots roots() const { return {path("sys"), path("proc"), path("dev")}; }

  private:
    std::filesystem::path root_;
};

}  // namespace rdmatune::testing
