#include "tuner/config/options.hpp"

#include <cctype>
#include <cmath>
#include <optional>

#include "tuner/base/text.hpp"
#include "tuner/config/row.hpp"

namespace rdmatune {
namespace {

using config::Row;
using config::Value;

Error expected(const std::string& what, const Value& given) {
    return Error{"expected " + what + ", not '" + std::string(given.text) + "'"};
}

// A number between the two limits, in the unit that `unit` names.
template <double Options::*Member>
Status setReal(Options& options, const Value& value, double low, double high, const char* unit) {
    const std::optional<double> number = parseReal(value.text);
    if (!number || !std::isfinite(*number) || *number < low || *number > high) {
        auto shown = [](double x) {
            std::string text = std::to_string(x);
            text.erase(text.find_last_not_of('0') + 1);
            if (text.back() == '.') text.pop_back();
            return text;
        };
        return expected("a number from " + shown(low) + " to " + shown(high) + unit, value);
    }
    options.*Member = *number;
    return Done{};
}

template <bool Options::*Member>
Status setSwitch(Options& options, const Value& value) {
    const std::optional<bool> on = parseBool(value.text);
    if (!on) return expected("yes or no", value);
    options.*Member = *on;
    return Done{};
}

template <std::string Options::*Member>
Status setPath(Options& options, const Value& value) {
    if (value.text.empty() || value.text.front() != '/') return expected("an absolute path", value);
    options.*Member = value.text;
    return Done{};
}

template <Mode Wanted>
Status setMode(Options& options, const Value& value) {
    const std::optional<bool> on = parseBool(value.text);
    if (!on || !*on) return Error{"is a word by itself, without a value"};
    options.mode = Wanted;
    options.site_default = false;
    return Done{};
}

Status nameMode(Options& options, const Value& value) {
    const std::string word = lower(value.text);
    if (word == "off")
        options.mode = Mode::Off;
    else if (word == "bind")
        options.mode = Mode::Bind;
    else if (word == "auto")
        options.mode = Mode::Auto;
    else
        return expected("off, bind or auto", value);
    options.site_default = false;
    return Done{};
}

Status nameSiteMode(Options& options, const Value& value) {
    if (Status status = nameMode(options, value); !status) return status;
    options.site_default = true;
    return Done{};
}

// Names, name:port or PCI addresses; whether a node has them is the planner's to say.
template <std::vector<std::string> Options::*Member>
Status setHcas(Options& options, const Value& value) {
    std::vector<std::string> names;
    for (const std::string_view part : split(value.text, ',')) {
        const std::string_view name = trim(part);
        const bool sound = !name.empty() && name.size() <= 64 &&
                           name.find_first_not_of(
                               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789_.:-") == std::string_view::npos;
        if (!sound)
            return expected("names of HCAs (mlx5_1, mlx5_1:2 or 0000:03:00.0) separated by commas",
                            value);
        names.emplace_back(name);
    }
    if (!value.append) (options.*Member).clear();
    (options.*Member).insert((options.*Member).end(), names.begin(), names.end());
    return Done{};
}

// PATTERN=FILE, or FILE for every host; outside the file several may be separated by ';'.
Status setTopology(Options& options, const Value& value) {
    std::vector<std::pair<std::string, std::string>> wanted;
    for (const std::string_view part : split(value.text, ';')) {
        const auto at = part.find('=');
        const std::string_view pattern =
            at == std::string_view::npos ? "*" : trim(part.substr(0, at));
        const std::string_view file =
            trim(at == std::string_view::npos ? part : part.substr(at + 1));
        if (pattern.empty() || file.empty() || file.front() != '/')
            return expected("HOST-PATTERN=FILE with an absolute path", value);
        wanted.emplace_back(pattern, file);
    }
    if (!value.append) options.topology.clear();
    options.topology.insert(options.topology.end(), wanted.begin(), wanted.end());
    return Done{};
}

Status setSample(Options& options, const Value& value) {
    const auto nodes = parseInt<int>(value.text);
    if (!nodes || *nodes < 2 || *nodes > 1000000)
        return expected("a number of nodes from 2 to 1000000", value);
    options.sample_nodes = *nodes;
    return Done{};
}

Status addRule(Options& options, const Value& value) {
    if (value.text.empty()) return expected("a rule", value);
    options.rules.emplace_back(value.text);
    options.rule_origins.emplace_back(value.origin);
    return Done{};
}

Status setHelp(Options&, const Value&) {
    return Done{};
}

/// At most half of the 120 s after which Slurm no longer accepts a step's credential (cred_expire
/// of AuthInfo in slurm.conf): srun has it already when it measures, and a job whose launch comes
/// too late for it fails.
constexpr double kMostBudget = 60;

Status setBudget(Options& o, const Value& v) {
    return setReal<&Options::budget_s>(o, v, 0.1, kMostBudget, " seconds");
}
Status setNodeTimeout(Options& o, const Value& v) {
    return setReal<&Options::node_timeout_s>(o, v, 0.1, 300, " seconds");
}
Status setTaskTimeout(Options& o, const Value& v) {
    return setReal<&Options::task_timeout_s>(o, v, 0.1, 300, " seconds");
}
Status setSlowLatency(Options& o, const Value& v) {
    return setReal<&Options::slow_latency_factor>(o, v, 1, 1000, "");
}
Status setSlowBandwidth(Options& o, const Value& v) {
    return setReal<&Options::slow_bandwidth_fraction>(o, v, 0, 1, "");
}

constexpr unsigned kAll = kFlag | kEnvironment | kPlugstack | kFile;
constexpr unsigned kSite = kPlugstack | kFile;

// clang-format off: one option, one line (and its help beneath).
constexpr Row kRows[] = {
    {{"auto", "", "", kFlag,
      "Bind, set up and, on more than one node, measure. What the bare flag means."},
     setMode<Mode::Auto>},
    {{"bind", "", "", kFlag, "Bind and set up without measuring."}, setMode<Mode::Bind>},
    {{"off", "", "", kFlag, "Leave the job alone, whatever the site's default is."},
     setMode<Mode::Off>},
    {{"mode", "MODE", "", kEnvironment,
      "off, bind or auto, for steps whose command line lacks the flag."},
     nameMode},
    {{"default", "MODE", "off", kSite, "off, bind or auto, for steps that ask for nothing."},
     nameSiteMode},
    {{"strict", "", "no", kAll, "A step that cannot be tuned fails instead of running untuned."},
     setSwitch<&Options::strict>},
    {{"verbose", "", "no", kAll, "List what was set, what was left alone, and why."},
     setSwitch<&Options::verbose>},
    {{"refresh", "", "no", kFlag | kEnvironment,
      "Measure anew, whatever was measured before in this allocation."},
     setSwitch<&Options::refresh>},
    {{"budget", "SECONDS", "5", kAll,
      "Time for measuring; 60 at most. What is measured by then counts."},
     setBudget},
    {{"help", "", "", kFlag, "Print this list and submit nothing."}, setHelp},
    {{"config", "FILE", "/etc/rdma-tune/rdma-tune.conf", kEnvironment | kPlugstack,
      "The site's configuration file."},
     setPath<&Options::config>},
    {{"program", "FILE", "", kSite,
      "The program rdma-tune; by default found beside the plugin, then in /usr/local/bin and "
      "/usr/bin."},
     setPath<&Options::program>},
    {{"tuner", "FILE", "", kEnvironment | kSite,
      "libnccl-tuner-rdmatune.so as the tasks see it; by default found beside the program."},
     setPath<&Options::tuner>},
    {{"node_timeout", "SECONDS", "10", kSite, "Time for reading one node's topology."},
     setNodeTimeout},
    {{"task_timeout", "SECONDS", "5", kSite, "Time for preparing one task."}, setTaskTimeout},
    {{"topology", "PATTERN=FILE", "", kEnvironment | kFile,
      "Saved topology for the hosts that match the pattern, instead of the machine's own; may be "
      "repeated, the first match counts."},
     setTopology},
    {{"hca_include", "LIST", "", kEnvironment | kFile,
      "Only these HCAs: exact names, name:port or PCI addresses; may be repeated."},
     setHcas<&Options::hca_include>},
    {{"hca_exclude", "LIST", "", kEnvironment | kFile, "Never these HCAs; may be repeated."},
     setHcas<&Options::hca_exclude>},
    {{"gpu_memory", "", "yes", kEnvironment | kFile,
      "Measure on GPU memory where that is possible."},
     setSwitch<&Options::gpu_memory>},
    {{"sample_nodes", "NODES", "256", kEnvironment | kFile,
      "Above this many nodes a sample of them is measured."},
     setSample},
    {{"slow_latency_factor", "FACTOR", "2.1", kEnvironment | kFile,
      "A node this many times slower than the median is named."},
     setSlowLatency},
    {{"slow_bandwidth_fraction", "FRACTION", "0.93", kEnvironment | kFile,
      "A node below this fraction of the median bandwidth is named."},
     setSlowBandwidth},
    {{"rule", "RULE", "", kFile, "A choice of NCCL's that the site pins; may be repeated."},
     addRule},
    {{"load_peermem", "", "no", kSite, "Let root load nvidia_peermem when slurmd starts."},
     setSwitch<&Options::load_peermem>},
};
// clang-format on

const Row* find(std::string_view key, unsigned place) {
    for (const Row& row : kRows)
        if (row.info.key == key && (row.info.places & place) != 0) return &row;
    return nullptr;
}

std::string keysOf(unsigned place) {
    std::vector<std::string_view> keys;
    for (const Row& row : kRows)
        if ((row.info.places & place) != 0) keys.push_back(row.info.key);
    return join(keys, ", ");
}

/// KEY or KEY=VALUE of the flag and of plugstack.conf; a switch without a value is on.
Status applyWord(Options& options, std::string_view word, unsigned place) {
    const auto at = word.find('=');
    const std::string key = lower(trim(word.substr(0, at)));
    const Row* row = find(key, place);
    if (row == nullptr) return Error{"unknown key '" + key + "'; known are " + keysOf(place)};
    if (at == std::string_view::npos && !row->info.argument.empty())
        return Error{key + ": expected " + key + "=" + std::string(row->info.argument)};
    const std::string_view text = at == std::string_view::npos ? "yes" : trim(word.substr(at + 1));
    const Status status = row->set(options, {text, {}, false});
    return status ? status : Status(within(key, status.error()));
}

bool isBareFlag(std::string_view argument) {
    return argument.empty() || argument == "(null)";
}

}  // namespace

const config::Row* config::findFileRow(std::string_view key) {
    return find(key, kFile);
}
std::string config::fileKeys() {
    return keysOf(kFile);
}

std::string_view toString(Mode mode) {
    switch (mode) {
        case Mode::Off:
            return "off";
        case Mode::Bind:
            return "bind";
        case Mode::Auto:
            break;
    }
    return "auto";
}

std::span<const OptionInfo> optionTable() {
    static const std::vector<OptionInfo> table = [] {
        std::vector<OptionInfo> infos;
        for (const Row& row : kRows) infos.push_back(row.info);
        return infos;
    }();
    return table;
}

Status applyFlag(Options& options, std::string_view argument) {
    Options wanted = options;
    wanted.mode = Mode::Auto;
    wanted.site_default = false;
    argument = trim(argument);
    bool mode_given = false;
    if (!isBareFlag(argument)) {
        for (const std::string_view part : split(argument, ',')) {
            const std::string word = lower(trim(part));
            if (word == "auto" || word == "bind" || word == "off") {
                if (mode_given) return Error{"only one of auto, bind and off can hold"};
                mode_given = true;
            }
            if (Status status = applyWord(wanted, trim(part), kFlag); !status) return status;
        }
    }
    options = std::move(wanted);
    return Done{};
}

Status applyPlugstack(Options& options, std::string_view argument) {
    Options wanted = options;
    if (Status status = applyWord(wanted, trim(argument), kPlugstack); !status)
        return within("plugstack.conf", status.error());
    options = std::move(wanted);
    return Done{};
}

Status applyVariable(Options& options, std::string_view key, std::string_view value) {
    const Row* row = find(key, kEnvironment);
    if (row == nullptr) return Error{"no variable sets '" + std::string(key) + "'"};
    value = trim(value);
    if (value.empty()) return Done{};
    const std::string name = variableName(key);
    const Status status = row->set(options, {value, name, false});
    return status ? status : Status(within(name, status.error()));
}

std::string variableName(std::string_view key) {
    std::string name = "RDMA_TUNE_";
    for (const char c : key) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return name;
}

bool flagAsksForHelp(std::string_view argument) {
    for (const std::string_view word : split(argument, ','))
        if (lower(trim(word)) == "help") return true;
    return false;
}

std::string flagHelp() {
    constexpr std::size_t kColumn = 18;
    std::string out =
        "--rdma-tune[=KEY[,KEY=VALUE...]] binds each rank to the GPU and the HCA that share a "
        "PCIe\n"
        "switch, measures the job's fabric and lets NCCL choose ring or tree by it. Keys:\n";
    for (const Row& row : kRows) {
        if ((row.info.places & kFlag) == 0) continue;
        std::string left = "  " + std::string(row.info.key);
        if (!row.info.argument.empty()) left += "=" + std::string(row.info.argument);
        left.resize(std::max(kColumn, left.size() + 1), ' ');
        out += left + std::string(row.info.help) + "\n";
    }
    return out + "More in spank-rdma-tune(8) and rdma-tune.conf(5).\n";
}

}  // namespace rdmatune
