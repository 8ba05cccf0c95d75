// --rdma-tune on the command lines of srun, sbatch and salloc.
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "spank/plugin.hpp"

namespace rdmatune::spank {
namespace {

int accept(const char* argument, bool remote) {
    const std::string text = argument == nullptr ? "" : argument;
    if (!remote && flagAsksForHelp(text)) {
        // Here nothing has been submitted yet, and nothing shall be.
        std::fputs(flagHelp().c_str(), stdout);
        std::fflush(stdout);
        _exit(0);
    }
    Options probe;
    if (const Status status = applyFlag(probe, text); !status && !remote) {
        tellError("--rdma-tune=" + text + ": " + status.error().message);
        return -1;
    }
    // In slurmstepd a value that this plugin does not know came from a newer one in srun. A failure
    // here would drain the node in a batch step; user_init says it, and leaves the tasks alone.
    state().sources.flag = text;
    return 0;
}

}  // namespace

int onOption(int, const char* argument, int remote) {
    try {
        return accept(argument, remote != 0);
    } catch (const std::exception& error) {
        slurm_error("rdma-tune: %s", error.what());
        return remote != 0 ? 0 : -1;
    }
}

}  // namespace rdmatune::spank
