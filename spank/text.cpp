#include "spank/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "tuner/base/text.hpp"

namespace rdmatune::spank {
namespace {

constexpr std::size_t kLongestProfile = 2047;    // kProfileTextMax without its zero byte
constexpr std::size_t kLongestAgreement = 8192;  // 32 rails of IPv6 subnets are under 2 KB
constexpr std::size_t kLongestValue = 16384;

bool isControl(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
}

bool isPlain(std::string_view text) {  // printable ASCII
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

bool isName(std::string_view name) {
    if (name.empty() || name.size() > 128 || (name[0] >= '0' && name[0] <= '9')) return false;
    return std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               c == '_';
    });
}

/// What a task's environment may be changed in; LD_PRELOAD and PATH, for example, may not.
bool mayChange(std::string_view name) {
    constexpr std::array kPrefixes = {"CUDA_",      "NCCL_", "UCX_",  "OMPI_MCA_", "NVSHMEM_",
                                      "RDMA_TUNE_", "HIP_",  "ROCR_", "GLOO_"};
    return isName(name) &&
           std::any_of(kPrefixes.begin(), kPrefixes.end(),
                       [name](const char* prefix) { return name.starts_with(prefix); });
}

/// Takes one line off the front; nothing when none is left or the last has no end.
std::optional<std::string_view> takeLine(std::string_view& text) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    return line;
}

Error wrongLine(std::string_view line) {
    const std::vector<std::string> shown = shownLines(line, 1, 60);
    return Error{"printed the line '" + (shown.empty() ? std::string() : shown.front()) +
                 "', which is no setting"};
}

}  // namespace

std::vector<std::string> shownLines(std::string_view text, std::size_t lines, std::size_t width) {
    std::vector<std::string> shown;
    for (const std::string_view raw : split(text, '\n')) {
        if (shown.size() == lines) break;
        std::string line(raw.substr(0, width));
        // A cut must not leave half a character.
        if (raw.size() > width)
            while (!line.empty() && (static_cast<unsigned char>(raw[line.size()]) & 0xc0) == 0x80)
                line.pop_back();
        for (char& c : line)
            if (isControl(c)) c = ' ';
        line.erase(line.find_last_not_of(' ') + 1);
        if (!line.empty()) shown.push_back(std::move(line));
    }
    return shown;
}

Result<Measured> parseMeasured(std::string_view output) {
    Measured measured;
    const std::optional<std::string_view> profile = takeLine(output);
    if (!profile || !profile->starts_with("rt") || profile->size() > kLongestProfile ||
        !isPlain(*profile))
        return Error{"measuring printed no profile"};
    measured.profile = *profile;
    if (const std::optional<std::string_view> agreed = takeLine(output)) {
        if (!agreed->starts_with("rt-agreed/") || agreed->size() > kLongestAgreement ||
            !isPlain(*agreed))
            return Error{"measuring printed something else than an agreement after the profile"};
        measured.agreed = *agreed;
    }
    return measured;
}

Result<TaskReply> parseTaskReply(std::string_view output) {
    TaskReply reply;
    while (const std::optional<std::string_view> line = takeLine(output)) {
        if (*line == "end") return reply;
        const auto space = line->find(' ');
        const std::string_view word = line->substr(0, space);
        const std::string_view rest =
            space == std::string_view::npos ? std::string_view() : line->substr(space + 1);
        if (word == "set") {
            const auto at = rest.find('=');
            if (at == std::string_view::npos || !mayChange(rest.substr(0, at)) ||
                rest.size() > kLongestValue || std::any_of(rest.begin(), rest.end(), isControl))
                return wrongLine(*line);
            reply.set.emplace_back(rest.substr(0, at), rest.substr(at + 1));
        } else if (word == "unset") {
            if (!mayChange(rest)) return wrongLine(*line);
            reply.unset.emplace_back(rest);
        } else if (word == "cpus") {
            const std::optional<CpuSet> cpus = CpuSet::parse(rest);
            if (!cpus || cpus->empty()) return wrongLine(*line);
            reply.cpus = *cpus;
        } else if (word == "say") {
            for (std::string& text : shownLines(rest, 1)) reply.say.push_back(std::move(text));
        } else {
            return wrongLine(*line);
        }
    }
    return Error{"stopped before the end of its settings"};
}

std::string section(std::string_view name, std::string_view bytes) {
    std::string out(name);
    out += ' ';
    out += std::to_string(bytes.size());
    out += '\n';
    out += bytes;
    return out;
}

std::string StepNote::str() const {
    std::string text(toString(mode));
    if (strict) text += ",strict";
    if (verbose) text += ",verbose";
    if (site_default) text += ",site";
    if (quiet) text += ",quiet";
    if (told) text += ",told";
    if (cpu_bind) text += ",cpubind";
    if (refuse) text += ",refuse";
    if (nested) text += ",nested";
    return text;
}

std::optional<StepNote> StepNote::parse(std::string_view text) {
    StepNote note;
    bool mode_given = false;
    for (const std::string_view word : split(text, ',')) {
        if (!mode_given) {
            if (word == "auto")
                note.mode = Mode::Auto;
            else if (word == "bind")
                note.mode = Mode::Bind;
            else if (word != "off")
                return std::nullopt;
            mode_given = true;
        } else if (word == "strict") {
            note.strict = true;
        } else if (word == "verbose") {
            note.verbose = true;
        } else if (word == "site") {
            note.site_default = true;
        } else if (word == "quiet") {
            note.quiet = true;
        } else if (word == "told") {
            note.told = true;
        } else if (word == "cpubind") {
            note.cpu_bind = true;
        } else if (word == "refuse") {
            note.refuse = true;
        } else if (word == "nested") {
            note.nested = true;
        } else {
            return std::nullopt;
        }
    }
    return note;
}

Environment::Environment(char* const* strings) {
    for (; strings != nullptr && *strings != nullptr; ++strings) {
        const std::string_view text(*strings);
        const auto at = text.find('=');
        // Shell functions ("BASH_FUNC_f%%=...") are carried along; a string without '=' is not.
        if (at != std::string_view::npos && at > 0)
            variables_.emplace_back(text.substr(0, at), text.substr(at + 1));
    }
}

void Environment::set(std::string_view name, std::string_view value) {
    unset(name);
    variables_.emplace_back(name, value);
}

void Environment::unset(std::string_view name) {
    std::erase_if(variables_, [name](const auto& variable) { return variable.first == name; });
}

const std::string* Environment::get(std::string_view name) const {
    for (const auto& [key, value] : variables_)
        if (key == name) return &value;
    return nullptr;
}

void Environment::dropEmpty(std::string_view prefix) {
    std::erase_if(variables_, [prefix](const auto& variable) {
        return variable.second.empty() && variable.first.starts_with(prefix);
    });
}

void Environment::keepForNode() {
    constexpr std::array kPrefixes = {"SLURM_", "RDMA_TUNE_", "CUDA_", "NCCL_",
                                      "ROCR_",  "HIP_",       "GPU_"};
    constexpr std::array kNames = {"HOME", "USER", "LOGNAME", "LANG", "LC_ALL"};
    std::erase_if(variables_, [&](const auto& variable) {
        const std::string& name = variable.first;
        return std::none_of(kPrefixes.begin(), kPrefixes.end(),
                            [&](const char* prefix) { return name.starts_with(prefix); }) &&
               std::find(kNames.begin(), kNames.end(), name) == kNames.end();
    });
    set("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
}

std::vector<std::string> Environment::strings() const {
    std::vector<std::string> out;
    out.reserve(variables_.size());
    for (const auto& [name, value] : variables_) out.push_back(name + "=" + value);
    return out;
}

std::string Environment::block() const {
    std::string out;
    for (const std::string& text : strings()) {
        out += text;
        out += '\0';
    }
    return out;
}

namespace {

std::string checksum(std::string_view text) {  // FNV-1a, 64 bits
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    std::string hex(16, '0');
    for (std::size_t i = hex.size(); i-- > 0; hash >>= 4) hex[i] = "0123456789abcdef"[hash & 15];
    return hex;
}

}  // namespace

std::string remember(const std::vector<std::pair<std::string, std::string>>& set) {
    std::vector<std::string> words;
    for (const auto& [name, value] : set) words.push_back(name + ":" + checksum(value));
    return join(words, ",");
}

std::vector<std::string> stillOurs(std::string_view remembered, const Environment& environment) {
    std::vector<std::string> names;
    for (const std::string_view word : split(remembered, ',')) {
        const auto at = word.find(':');
        if (at == std::string_view::npos || !mayChange(word.substr(0, at))) continue;
        const std::string* value = environment.get(word.substr(0, at));
        if (value != nullptr && checksum(*value) == word.substr(at + 1))
            names.emplace_back(word.substr(0, at));
    }
    return names;
}

}  // namespace rdmatune::spank
