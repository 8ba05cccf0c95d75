#include "tuner/fabric/transport.hpp"

namespace rdmatune::fabric {
namespace {

Error noMessages() {
    return Error{"this transport carries no messages: it was opened without them"};
}

}  // namespace

Status Link::post(std::span<const std::byte>) {
    return noMessages();
}
Result<bool> Link::flush() {
    return noMessages();
}
Result<bool> Link::take(std::span<std::byte>) {
    return noMessages();
}

}  // namespace rdmatune::fabric
