// What to do when verbs refuse: every failed call names device, port, peer and remedy.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tuner/base/result.hpp"

namespace rdmatune::fabric {

/// "mlx5_0 port 1: cannot CALL: Cannot allocate memory (errno 12); REMEDY". The remedy follows from
/// the errno: the lock limit with its value (ENOMEM), /dev/infiniband (EACCES, EPERM), the port.
[[nodiscard]] Error verbsError(std::string_view where, std::string_view call, int errnum);

/// The remedy alone, for a lock limit of `memlock` bytes (nothing: unlimited). Empty: none known.
[[nodiscard]] std::string remedyFor(int errnum, std::optional<std::uint64_t> memlock);

/// A work request that completed with `status`, or a queue pair that stopped.
[[nodiscard]] Error completionError(std::string_view where, std::string_view peer,
                                    std::string_view what, ibv_wc_status status);

/// RLIMIT_MEMLOCK's soft value in bytes; nothing when it is unlimited.
[[nodiscard]] std::optional<std::uint64_t> lockLimit();

}  // namespace rdmatune::fabric
