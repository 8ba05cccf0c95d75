/* Loads the plugin the way NCCL does, into a process that has another C++ runtime library already:
   load PLUGIN. Exit 0 when every interface is found, answers, and can be unloaded and loaded again. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*init_old)(size_t, size_t, void *, void **);

struct tuner_old {
    const char *name;
    init_old init;
    void *get_coll_info;
    int (*destroy)(void *);
};

int main(int count, char **arguments) {
    static const char *const symbols[] = {"ncclTunerPlugin_v6", "ncclTunerPlugin_v5", "ncclTunerPlugin_v4",
                                          "ncclTunerPlugin_v3", "ncclTunerPlugin_v2"};
    if (count != 2) return 2;
    if (dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL) == NULL) printf("no other libstdc++ here\n");
    for (int round = 0; round < 3; ++round) {
        void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
        if (plugin == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        for (size_t i = 0; i < sizeof symbols / sizeof *symbols; ++i) {
            const struct tuner_old *tuner = dlsym(plugin, symbols[i]);
            if (tuner == NULL || strcmp(tuner->name, "rdma-tune") != 0) {
                fprintf(stderr, "%s: not found\n", symbols[i]);
                return 1;
            }
            /* v2 to v4 begin alike. */
            if (i >= 2) {
                void *context = &context;
                if (tuner->init(16, 2, NULL, &context) != 0 || tuner->destroy(context) != 0) return 1;
            }
        }
        if (dlsym(RTLD_DEFAULT, "ncclTunerPlugin_v5") != NULL) {
            fprintf(stderr, "the plugin's symbols are visible to the whole process\n");
            return 1;
        }
        if (dlclose(plugin) != 0) return 1;
    }
    return 0;
}
