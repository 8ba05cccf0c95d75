#include "tuner/fabric/verbs_handles.hpp"

#include <cstring>

namespace rdmatune::fabric {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

HostBuffer::HostBuffer(std::size_t bytes) : size_((bytes + kPage - 1) / kPage * kPage) {
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, size_)));
    if (memory_)
        std::memset(memory_.get(), 0, size_);
    else
        size_ = 0;
}

}  // namespace rdmatune::fabric
