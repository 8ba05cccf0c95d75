// The flag, plugstack.conf's arguments and RDMA_TUNE_* variables: accepted or refused, never half
// applied.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tuner/config/options.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rdmatune;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Options options;
    const Options before = options;
    if (!applyFlag(options, text) && options.mode != before.mode) std::abort();
    (void)flagAsksForHelp(text);
    (void)applyPlugstack(options, text);
    for (const OptionInfo& info : optionTable())
        if (info.places & kEnvironment) (void)applyVariable(options, info.key, text);
    return 0;
}
