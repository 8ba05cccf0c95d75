/* Loads a tuner plugin the way NCCL does and prints what it chooses, one line for each size:
 *     BYTES ALGORITHM PROTOCOL CHANNELS
 * Usage: nccl_loader INTERFACE NODES RANKS    with NCCL_TUNER_PLUGIN in the environment.
 * INTERFACE is the newest that the pretended NCCL knows (3 to 6); like NCCL it takes the plugin's newest
 * that is not newer. Without NCCL_TUNER_PLUGIN it prints "no tuner", exit status 0; a plugin that does not
 * load is "tuner not loaded: REASON", exit status 3. Declarations are our own, from the interface's facts. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*log_fn)(int level, unsigned long flags, const char* file, int line, const char* fmt, ...);

struct domain { int domains, min_ranks, max_ranks; };
struct constants {
    double base[7][3];
    double hw[3][7][3];
    double bandwidth[5][4][3];
};
struct v3 {
    const char* name;
    int (*init)(size_t ranks, size_t nodes, log_fn log, void** context);
    int (*choose)(void* context, int function, size_t bytes, int ops, float** table, int algorithms,
                  int protocols, int* channels);
    int (*destroy)(void* context);
};
struct v4 {
    const char* name;
    int (*init)(size_t ranks, size_t nodes, log_fn log, void** context);
    int (*choose)(void* context, int function, size_t bytes, int ops, float** table, int algorithms,
                  int protocols, int registered, int* channels);
    int (*destroy)(void* context);
};
struct v5 {
    const char* name;
    int (*init)(void** context, uint64_t communicator, size_t ranks, size_t nodes, log_fn log,
                struct domain* domain, struct constants* constants);
    int (*choose)(void* context, int function, size_t bytes, int ops, float** table, int algorithms,
                  int protocols, int registered, int* channels);
    int (*destroy)(void* context);
};

static void logger(int level, unsigned long flags, const char* file, int line, const char* fmt, ...) {
    (void)flags; (void)file; (void)line;
    if (level > 2) return; /* the errors and warnings; INFO and below are NCCL's to show or not */
    va_list arguments;
    va_start(arguments, fmt);
    fputs("log: ", stderr);
    vfprintf(stderr, fmt, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

/* A table in the shape of NCCL's: tree is quick at first and slow in bulk, ring the other way. */
static void price(float table[7][3], size_t bytes) {
    static const float latency[2][3] = {{20, 30, 60}, {60, 75, 160}};
    static const float per_byte[2][3] = {{4e-5f, 2e-5f, 1.6e-5f}, {4e-5f, 1.4e-5f, 1.1e-5f}};
    for (int a = 0; a < 7; ++a)
        for (int p = 0; p < 3; ++p) table[a][p] = a < 2 ? latency[a][p] + per_byte[a][p] * (float)bytes : -1.0f;
}

int main(int argc, char** argv) {
    if (argc != 4) { fprintf(stderr, "usage: nccl_loader INTERFACE NODES RANKS\n"); return 2; }
    const int newest = atoi(argv[1]);
    const size_t nodes = strtoul(argv[2], NULL, 10), ranks = strtoul(argv[3], NULL, 10);
    const char* path = getenv("NCCL_TUNER_PLUGIN");
    if (path == NULL || *path == '\0') { puts("no tuner"); return 0; }
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) { printf("tuner not loaded: %s\n", dlerror()); return 3; }
    int interface = newest;
    void* symbol = NULL;
    for (; interface >= 3 && symbol == NULL; --interface) {
        char name[32];
        snprintf(name, sizeof name, "ncclTunerPlugin_v%d", interface);
        symbol = dlsym(library, name);
    }
    ++interface;
    if (symbol == NULL) { printf("tuner not loaded: no interface up to v%d\n", newest); return 3; }
    struct domain domain = {(int)nodes, (int)(ranks / nodes), (int)(ranks / nodes)};
    static struct constants constants;
    for (int a = 0; a < 7; ++a)
        for (int p = 0; p < 3; ++p) {
            constants.base[a][p] = 6;
            for (int link = 0; link < 3; ++link) constants.hw[link][a][p] = link == 2 ? 5 + 3 * p : 1 + p;
        }
    void* context = NULL;
    const int started = interface >= 5
        ? ((struct v5*)symbol)->init(&context, 1, ranks, nodes, logger, &domain, &constants)
        : ((struct v3*)symbol)->init(ranks, nodes, logger, &context);
    if (started != 0) { printf("tuner not loaded: init returned %d\n", started); return 3; }
    printf("tuner v%d loaded\n", interface);
    for (size_t bytes = 1024; bytes <= (1UL << 30); bytes *= 8) {
        float table[7][3];
        int channels = 0, best = 0, wrong;
        price(table, bytes);
        if (interface >= 5)
            wrong = ((struct v5*)symbol)->choose(context, 4, bytes, 1, (float**)table, 7, 3, 0, &channels);
        else if (interface == 4)
            wrong = ((struct v4*)symbol)->choose(context, 4, bytes, 1, (float**)table, 7, 3, 0, &channels);
        else
            wrong = ((struct v3*)symbol)->choose(context, 4, bytes, 1, (float**)table, 7, 3, &channels);
        if (wrong != 0) { printf("choosing failed: %d\n", wrong); return 4; }
        const float* flat = &table[0][0];
        for (int i = 1; i < 21; ++i)
            if (flat[i] >= 0 && flat[i] < flat[best]) best = i;
        printf("%zu %s %s %d\n", bytes, best / 3 == 0 ? "tree" : "ring",
               best % 3 == 0 ? "LL" : best % 3 == 1 ? "LL128" : "Simple", channels);
    }
    if (((struct v3*)symbol)->destroy(context) != 0) { puts("ending failed"); return 4; }
    return 0;
}
