#include "tuner/nccl/log.hpp"

#include <cstdio>

namespace rdmatune::nccl {

void say(Logger logger, const char* format, ...) {
    if (logger == nullptr) return;
    char line[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    logger(kLogInfo, kLogTuning, "rdma-tune", __LINE__, "TUNER/rdma-tune: %s", line);
}

std::size_t append(char* out, std::size_t size, std::size_t used, const char* format, ...) {
    if (used + 1 >= size) return used;
    va_list arguments;
    va_start(arguments, format);
    const int wanted = vsnprintf(out + used, size - used, format, arguments);
    va_end(arguments);
    if (wanted < 0) return used;
    const std::size_t length = static_cast<std::size_t>(wanted);
    return used + length < size ? used + length : size - 1;
}

}  // namespace rdmatune::nccl
