// The functions that Slurm calls. Each hands over to the file of its context; no exception leaves.
#include "spank/plugin.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace rdmatune::spank {

State& state() {
    // Never destroyed: Slurm may still call hooks while the process takes itself apart.
    static auto* const only = new State;
    return *only;
}

std::string hostName() {
    char name[256] = {};
    if (gethostname(name, sizeof name - 1) != 0) return "this node";
    return name;
}

std::string tookText(const std::string& what, double seconds) {
    char number[32];
    std::snprintf(number, sizeof number, "%.3f", seconds);
    return what + " took " + number + " s";
}

std::string reasonOf(const ChildOutcome& outcome, const std::string& what) {
    if (outcome.end == ChildOutcome::End::Exited || outcome.end == ChildOutcome::End::Reaped) {
        for (std::string& line : shownLines(outcome.errors, 1)) {
            constexpr std::string_view kPrefix = "rdma-tune: ";
            if (line.starts_with(kPrefix)) line.erase(0, kPrefix.size());
            return line;
        }
    }
    return what + " " + outcome.describe();
}

namespace {

std::string ownFile() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(&state), &info) == 0 || info.dli_fname == nullptr) return {};
    char* const real = realpath(info.dli_fname, nullptr);
    std::string path = real == nullptr ? info.dli_fname : real;
    std::free(real);
    return path;
}

void registerOption(spank_t handle) {
    static char name[] = "rdma-tune";
    static char argument[] = "KEY[,KEY=VALUE...]";
    static char usage[] =
        "[rdma-tune] bind ranks to GPU and HCA, measure the fabric, tune NCCL (=help lists the "
        "keys)";
    static spank_option option = {name, argument, usage, 2, 0, onOption};  // 2: optional argument
    if (spank_option_register(handle, &option) != ESPANK_SUCCESS)
        tellError(
            "--rdma-tune could not be registered; does another plugin have an option of that "
            "name?");
}

int init(spank_t handle, int count, char** arguments) {
    state().sources.plugstack.assign(arguments, arguments + count);
    state().sources.plugin = ownFile();
    // Every context by registration: sbatch and salloc ignore a static table of options.
    switch (spank_context()) {
        case S_CTX_LOCAL:
        case S_CTX_ALLOCATOR:
        case S_CTX_REMOTE:
            registerOption(handle);
            break;
        case S_CTX_SLURMD:
            slurmdInit();
            break;
        default:  // prolog and epilog: a failure there would drain the node
            break;
    }
    return 0;
}

int initPostOpt() {
    // Nothing is done here yet (the job may be heterogeneous, and spank_job_control_setenv would
    // crash its srun); slurmstepd's would go to slurmd's log only.
    if (spank_context() == S_CTX_LOCAL) ++state().components;
    return 0;
}

/// Runs a hook; whatever is thrown (memory, mostly) leaves the job untuned instead of unstarted.
template <class Hook>
int guarded(const char* where, Hook hook) {
    try {
        return hook();
    } catch (const std::exception& error) {
        slurm_error("rdma-tune: %s: %s; this step runs untuned", where, error.what());
    } catch (...) {
        slurm_error("rdma-tune: %s: unknown failure; this step runs untuned", where);
    }
    return 0;
}

}  // namespace
}  // namespace rdmatune::spank

namespace spank = rdmatune::spank;

#define RDMA_TUNE_VISIBLE __attribute__((visibility("default")))
#define RDMA_TUNE_EXPORT extern "C" RDMA_TUNE_VISIBLE

extern "C" {
// Read by Slurm when it loads the plugin: a build for another release is refused.
RDMA_TUNE_VISIBLE extern const char plugin_name[];
RDMA_TUNE_VISIBLE extern const char plugin_type[];
RDMA_TUNE_VISIBLE extern const unsigned int plugin_version;
RDMA_TUNE_VISIBLE extern const unsigned int spank_plugin_version;
const char plugin_name[] = "rdma_tune";
const char plugin_type[] = "spank";
// Nested steps need srun --overlap, and slurm_spank_log is where it is since 20.02.
static_assert(SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(20, 11, 0),
              "rdma-tune needs the headers of Slurm 20.11 or newer");
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
const unsigned int spank_plugin_version = 1;
}

RDMA_TUNE_EXPORT int slurm_spank_init(spank_t handle, int count, char** arguments) {
    return spank::guarded("init", [&] { return spank::init(handle, count, arguments); });
}

RDMA_TUNE_EXPORT int slurm_spank_init_post_opt(spank_t, int, char**) {
    return spank::guarded("init_post_opt", [] { return spank::initPostOpt(); });
}

RDMA_TUNE_EXPORT int slurm_spank_local_user_init(spank_t handle, int, char**) {
    return spank::guarded("local_user_init",
                          [=] { return spank::srunLocalUserInit(spank::Handle(handle)); });
}

RDMA_TUNE_EXPORT int slurm_spank_user_init(spank_t handle, int, char**) {
    return spank::guarded("user_init", [=] { return spank::stepdUserInit(spank::Handle(handle)); });
}

RDMA_TUNE_EXPORT int slurm_spank_task_init(spank_t handle, int, char**) {
    return spank::guarded("task_init", [=] { return spank::taskInit(spank::Handle(handle)); });
}
