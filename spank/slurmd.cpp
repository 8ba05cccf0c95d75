// In slurmd, as root, when it starts: the site's configuration is checked for the administrator,
// and nvidia_peermem is loaded where the site asks for it. Never fails: slurmd would not start.
#include <sys/stat.h>
#include <unistd.h>

#include "spank/plugin.hpp"

namespace rdmatune::spank {
namespace {

constexpr double kModprobeSeconds = 10;

void loadPeermem() {
    if (access("/sys/module/nvidia_peermem", F_OK) == 0) {
        slurm_info("rdma-tune: nvidia_peermem is loaded already");
        return;
    }
    ChildSpec spec;
    for (const char* path : {"/usr/sbin/modprobe", "/sbin/modprobe"})
        if (spec.argv.empty() && access(path, X_OK) == 0) spec.argv = {path, "nvidia_peermem"};
    if (spec.argv.empty()) {
        tellError(
            "load_peermem: there is no /usr/sbin/modprobe; load nvidia_peermem at boot instead");
        return;
    }
    spec.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"};
    spec.timeout_s = kModprobeSeconds;
    const ChildOutcome outcome = runChild(spec);
    if (outcome.succeeded())
        slurm_info("rdma-tune: nvidia_peermem was loaded");
    else
        tellError("load_peermem: modprobe nvidia_peermem: " + reasonOf(outcome, "modprobe"));
}

}  // namespace

void slurmdInit() {
    const Result<Options> options = resolve(state().sources, Environment());
    if (!options) {
        tellError(options.error().message + "; steps on this node will run untuned");
        return;
    }
    if (options->load_peermem) loadPeermem();
}

}  // namespace rdmatune::spank
