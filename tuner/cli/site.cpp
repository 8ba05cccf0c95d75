#include "tuner/cli/site.hpp"

#include <fnmatch.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "tuner/base/text.hpp"
#include "tuner/config/paths.hpp"

namespace rdmatune::cli {
namespace {

std::vector<std::string> hostNames() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return {};
    const std::string full = name.data();
    const auto dot = full.find('.');
    if (dot == std::string::npos) return {full};
    return {full.substr(0, dot), full};
}

bool matchesHost(const std::string& pattern, const std::vector<std::string>& names) {
    for (const std::string& name : names)
        if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
    return false;
}

std::string ownProgram() {
    std::error_code failed;
    const auto path = std::filesystem::read_symlink("/proc/self/exe", failed);
    return failed ? std::string{} : path.string();
}

Result<int> gpuNamed(const Node& node, std::string_view name) {
    const auto address = PciAddress::parse(name);
    for (const Gpu& gpu : node.gpus)
        if ((address && gpu.pci == address) || (gpu.uuid && lower(*gpu.uuid) == lower(name)))
            return gpu.index;
    return Error{"--gpus: " + std::string(name) +
                 " is no GPU of this node; expected numbers from 0 to " +
                 std::to_string(static_cast<int>(node.gpus.size()) - 1) +
                 " in PCI order, ranges, PCI addresses or UUIDs"};
}

}  // namespace

Environment ownEnvironment() {
    Environment out;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const auto equals = text.find('=');
        if (equals != std::string_view::npos && equals > 0)
            out.try_emplace(std::string(text.substr(0, equals)), text.substr(equals + 1));
    }
    return out;
}

Result<Options> siteOptions(const Environment& env, const std::string& config) {
    const auto get = [&env](const char* name) {
        const std::string* value = lookUp(env, name);
        return value == nullptr ? nullptr : value->c_str();
    };
    Options options;
    if (const char* named = get("RDMA_TUNE_CONFIG"))
        if (Status status = applyVariable(options, "config", named); !status) return status.error();
    if (!config.empty()) options.config = config;
    const std::string file = options.config;
    if (Status status = applyFile(options, file); !status) return status.error();
    if (Status status = applyEnvironment(options, get); !status) return status.error();
    options.config = file;
    if (options.tuner.empty()) options.tuner = findTuner(ownProgram());
    return options;
}

Result<Node> nodeHere(const Options& options, const SystemRoots& roots) {
    const auto names = hostNames();
    for (const auto& [pattern, file] : options.topology) {
        if (!matchesHost(pattern, names)) continue;
        auto node = readThisMachineThrough(file, roots);
        if (!node) return within("topology " + pattern + "=" + file, node.error());
        for (Gpu& gpu : node->gpus)
            if (!gpu.minor) gpu.minor = gpu.index;
        if (!names.empty()) node->hostname = names.front();
        return node;
    }
    return readThisMachine(roots);
}

PlanRequest requestFrom(const Options& options, const Environment& env) {
    PlanRequest out;
    out.hca_include = options.hca_include;
    out.hca_exclude = options.hca_exclude;
    if (const std::string* agreed = lookUp(env, "SLURM_RDMA_TUNE_AGREED"))
        out.agreed = Agreement::parse(*agreed);
    return out;
}

Result<std::vector<int>> gpusNamed(const Node& node, std::string_view list) {
    std::vector<int> out;
    for (const auto part : split(list, ',')) {
        const auto name = trim(part);
        if (name.empty()) continue;
        if (const auto numbers = parseNumbers(name)) {
            out.insert(out.end(), numbers->begin(), numbers->end());
            continue;
        }
        const auto gpu = gpuNamed(node, name);
        if (!gpu) return gpu.error();
        out.push_back(*gpu);
    }
    return out;
}

std::vector<std::string> commaList(const std::vector<std::string>& given) {
    std::vector<std::string> out;
    for (const std::string& text : given)
        for (const auto part : split(text, ','))
            if (!trim(part).empty()) out.emplace_back(trim(part));
    return out;
}

}  // namespace rdmatune::cli
