#include "tuner/fabric/verbs_error.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace rdmatune::fabric {
namespace {

std::string_view remedyFor(ibv_wc_status status) {
    switch (status) {
        case IBV_WC_RETRY_EXC_ERR:
            return "the peer does not answer: it may have ended, its port may be down, the path or "
                   "GID may not lead there, or a filter drops RoCE (UDP port 4791)";
        case IBV_WC_RNR_RETRY_EXC_ERR:
            return "the peer does not take what is sent; it may hang";
        case IBV_WC_REM_ACCESS_ERR:
        case IBV_WC_REM_INV_REQ_ERR:
        case IBV_WC_REM_OP_ERR:
            return "the peer refused the access: it may have ended and its memory be gone, or be "
                   "of another job";
        case IBV_WC_LOC_PROT_ERR:
        case IBV_WC_LOC_LEN_ERR:
        case IBV_WC_LOC_QP_OP_ERR:
            return "the local memory or queue pair is not as the device wants it; see the kernel's "
                   "log";
        case IBV_WC_WR_FLUSH_ERR:
            return "the queue pair was already in error; an earlier failure or a port that went "
                   "down caused it";
        default:
            return "see the kernel's log of this node";
    }
}

}  // namespace

std::optional<std::uint64_t> lockLimit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return std::nullopt;
    return limit.rlim_cur;
}

std::string remedyFor(int errnum, std::optional<std::uint64_t> memlock) {
    switch (errnum) {
        case ENOMEM:
        case EAGAIN:
            if (memlock)
                return fmt::format(
                    "locked memory is limited to {} KiB (ulimit -l): raise the limit with ulimit "
                    "-l unlimited before srun, or let the admin set LimitMEMLOCK=infinity for "
                    "slurmd",
                    *memlock / 1024);
            return "the device or the kernel is out of memory for RDMA";
        case EACCES:
        case EPERM:
            return "/dev/infiniband/uverbs* cannot be used by this user: its mode should be 0666 "
                   "(rdma-core's udev rules) and the job's device cgroup must allow it";
        case ENODEV:
        case ENOENT:
            return "the device is gone, or /dev/infiniband is missing here (a container?)";
        case EINVAL:
            return "the device does not take these parameters: the port may be down or the GID "
                   "index may not exist";
        case ENETUNREACH:
        case EHOSTUNREACH:
            return "no route to the peer: is the GID of an interface that reaches the peer's "
                   "network?";
        case ETIMEDOUT:
            return "the peer's address could not be resolved: is it up?";
        default:
            return {};
    }
}

Error verbsError(std::string_view where, std::string_view call, int errnum) {
    const std::string remedy = remedyFor(errnum, lockLimit());
    return Error{fmt::format("{}: {} failed: {} (errno {}){}{}", where, call, std::strerror(errnum),
                             errnum, remedy.empty() ? "" : "; ", remedy)};
}

Error completionError(std::string_view where, std::string_view peer, std::string_view what,
                      ibv_wc_status status) {
    return Error{fmt::format("{} to {}: {} failed: {} (status {}); {}", where, peer, what,
                             ibv_wc_status_str(status), static_cast<int>(status),
                             remedyFor(status))};
}

}  // namespace rdmatune::fabric
