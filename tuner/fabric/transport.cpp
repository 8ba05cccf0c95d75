#include "tuner/fabric/transport.hpp"

namespace rdmatune::fabric {

Status Link::put(std::span<const std::byte>, Deadline) {
    return Error{"this transport moves no caller's data: collectives need one that does"};
}

Status Link::take(std::span<std::byte>, Deadline) {
    return Error{"this transport moves no caller's data: collectives need one that does"};
}

}  // namespace rdmatune::fabric
