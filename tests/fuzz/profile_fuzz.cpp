// The profile is read inside the application: any text is a profile or is refused, and what is
// accepted can be written and read again. The checksum is mended first, or no mutation would pass
// it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tuner/profile/crc32.hpp"
#include "tuner/profile/profile.hpp"

namespace {

void read(const std::string& text) {
    using namespace rdmatune;
    FabricProfile profile;
    if (parseProfile(text.c_str(), profile) != ProfileError::None) return;
    char written[kProfileTextMax];
    FabricProfile again;
    if (formatProfile(profile, written, sizeof written) == 0 ||
        parseProfile(written, again) != ProfileError::None || !(again == profile))
        std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string text(reinterpret_cast<const char*>(data), size);
    read(text);
    constexpr std::string_view kField = ";crc=";
    const std::size_t at = text.rfind(kField);
    if (at == std::string::npos) return 0;
    char sum[16];
    for (const std::size_t covered : {at, at + 1}) {
        std::snprintf(sum, sizeof sum, "%08x",
                      static_cast<unsigned>(rdmatune::crc32(text.data(), covered)));
        read(text.substr(0, at + kField.size()) + sum);
    }
    return 0;
}
