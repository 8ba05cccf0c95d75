#include <cstdio>

#include "tuner/cli/site.hpp"

namespace rdmatune::cli {

bool printOut(std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
           std::fflush(stdout) == 0;
}

}  // namespace rdmatune::cli
