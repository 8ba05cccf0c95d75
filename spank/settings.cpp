#include "spank/settings.hpp"

#include <sys/stat.h>

#include <array>

#include "tuner/base/text.hpp"
#include "tuner/config/paths.hpp"

namespace rdmatune::spank {
namespace {

constexpr std::array kSwitches = {"mode", "strict", "verbose"};

auto lookup(const Environment& environment) {
    return [&environment](const char* name) {
        const std::string* value = environment.get(name);
        return value == nullptr ? nullptr : value->c_str();
    };
}

Status applyPlugstackAll(Options& options, const Sources& sources) {
    for (const std::string& argument : sources.plugstack)
        if (Status status = applyPlugstack(options, argument); !status) return status;
    return Done{};
}

/// KEY=VALUE words, as RDMA_TUNE_KEY where the program knows such a variable.
void passWord(std::string_view word, Environment& environment, bool over_the_users) {
    const auto at = word.find('=');
    const std::string key = lower(trim(word.substr(0, at)));
    for (const OptionInfo& info : optionTable()) {
        if (info.key != key || (info.places & kEnvironment) == 0) continue;
        const std::string name = variableName(key);
        const std::string* present = environment.get(name);
        if (!over_the_users && present != nullptr && !present->empty()) return;
        environment.set(name, at == std::string_view::npos ? "yes" : trim(word.substr(at + 1)));
    }
}

}  // namespace

Environment switches(const Environment& environment) {
    Environment out;
    for (const char* key : kSwitches)
        if (const std::string* value = environment.get(variableName(key)))
            out.set(variableName(key), *value);
    return out;
}

Result<Options> resolve(const Sources& sources, const Environment& environment) {
    const auto get = lookup(environment);
    // The file's name must be known first: from plugstack.conf, or RDMA_TUNE_CONFIG over it.
    Options named;
    if (Status status = applyPlugstackAll(named, sources); !status) return status.error();
    if (const char* config = get("RDMA_TUNE_CONFIG"))
        if (Status status = applyVariable(named, "config", config); !status) return status.error();

    Options options;
    if (Status status = applyFile(options, named.config); !status) return status.error();
    if (Status status = applyPlugstackAll(options, sources); !status) return status.error();
    if (Status status = applyEnvironment(options, get); !status) return status.error();
    if (sources.flag)
        if (Status status = applyFlag(options, *sources.flag); !status) return status.error();
    if (options.program.empty()) options.program = findProgram(sources.plugin);
    if (options.tuner.empty()) options.tuner = findTuner(sources.plugin);
    return options;
}

StepNote noteOf(const Options& options) {
    StepNote note;
    note.mode = options.mode;
    note.strict = options.strict;
    note.verbose = options.verbose;
    note.site_default = options.site_default;
    return note;
}

StepNote asked(const Sources& sources, const Environment& environment) {
    Options options;
    // One by one, so that a wrong word does not hide the others.
    for (const std::string& argument : sources.plugstack) (void)applyPlugstack(options, argument);
    for (const char* key : kSwitches)
        if (const std::string* value = environment.get(variableName(key)))
            (void)applyVariable(options, key, *value);
    if (sources.flag) (void)applyFlag(options, *sources.flag);
    return noteOf(options);
}

Status checkProgram(const Options& options, const Sources& sources) {
    if (options.program.empty())
        return Error{
            "the program rdma-tune was not found beside " + sources.plugin +
            ", in /usr/local/bin or in /usr/bin; install it on this node or set program= in "
            "plugstack.conf"};
    struct stat plugin {};
    const bool known = stat(sources.plugin.c_str(), &plugin) == 0;
    return rdmatune::checkProgram(options.program, known ? plugin.st_uid : 0);
}

void passOn(const Options& options, const Sources& sources, Environment& environment) {
    for (const std::string& argument : sources.plugstack) passWord(argument, environment, false);
    if (sources.flag && *sources.flag != "(null)")
        for (const std::string_view word : split(*sources.flag, ','))
            passWord(trim(word), environment, true);
    const auto unlessGiven = [&](const char* name, const std::string& value) {
        const std::string* given = environment.get(name);
        if (given == nullptr || given->empty()) environment.set(name, value);
    };
    unlessGiven("RDMA_TUNE_CONFIG", options.config);
    if (!options.tuner.empty()) unlessGiven("RDMA_TUNE_TUNER", options.tuner);
}

}  // namespace rdmatune::spank
