// Speaking through NCCL's own logger, so that NCCL_DEBUG decides whether and where a line appears.
#pragma once

#include <cstdarg>
#include <cstddef>

#include "tuner/nccl/abi.hpp"

namespace rdmatune::nccl {

/// One line at INFO under TUNING, beginning "TUNER/rdma-tune: ". Nothing when there is no logger.
void say(Logger logger, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// Formats like snprintf behind `used`, never beyond `size`; returns the new end.
std::size_t append(char* out, std::size_t size, std::size_t used, const char* format, ...)
    __attribute__((format(printf, 4, 5)));

}  // namespace rdmatune::nccl
