// The healthy machine as a tree of files, and what the tests ask of a diagnosis of it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/unit/support/gdr_machine.hpp"
#include "tuner/gpudirect/finding.hpp"

namespace rdmatune {

using testing::cpuinfo;
using testing::FakeTree;
using testing::gdrNode;
using testing::limits;
using testing::PciConfig;
using testing::writeHealthy;

class Doctor : public ::testing::Test {
  protected:
    Doctor() { writeHealthy(tree_, node_); }

    /// Every finding of every test has a remedy for both.
    Diagnosis run() const {
        Diagnosis out = diagnose(node_, tree_.roots());
        for (const Finding& finding : out.findings) {
            EXPECT_FALSE(finding.what.empty()) << finding.code;
            EXPECT_FALSE(finding.user.empty()) << finding.code;
            EXPECT_FALSE(finding.admin.empty()) << finding.code;
        }
        return out;
    }
    static const Finding* find(const Diagnosis& diagnosis, const std::string& code) {
        for (const Finding& finding : diagnosis.findings)
            if (finding.code == code) return &finding;
        return nullptr;
    }
    /// The finding, with a remedy for somebody; fails the test when it is not there.
    static Finding expect(const Diagnosis& diagnosis, const std::string& code, Severity severity) {
        const Finding* found = find(diagnosis, code);
        if (found == nullptr) {
            ADD_FAILURE() << "no finding " << code << " in " << diagnosisToJson(diagnosis, {}, 1);
            return {};
        }
        EXPECT_EQ(found->severity, severity) << found->what;
        EXPECT_FALSE(found->what.empty());
        return *found;
    }
    static std::string setting(const Diagnosis& diagnosis, const std::string& name) {
        for (const auto& entry : diagnosis.env)
            if (entry.name == name) return entry.value;
        return "";
    }
    static GdrPair own(const Diagnosis& diagnosis, int gpu) {
        for (const GdrPair& pair : diagnosis.pairs)
            if (pair.gpu == gpu) return pair;
        return {};
    }
    void remove(const std::string& path) { std::filesystem::remove_all(tree_.path(path)); }
    void configure(const char* address, const PciConfig& config) {
        tree_.file(std::string("sys/bus/pci/devices/") + address + "/config", config.bytes());
    }
    void noDmabuf() { tree_.file("proc/driver/nvidia/version", testing::kClosedDriver); }

    FakeTree tree_;
    Node node_ = gdrNode();
};

}  // namespace rdmatune
