/* How long a launch takes, by many ways to launch:
 *
 *   rates PTX SECONDS LOOPS MODE:US ...
 *
 * prints one line of JSON, {"MODE:US": microseconds per launch, ...}. It is C, since a launch is two
 * microseconds and Python's own share of that would hide what is measured. Needs no header of CUDA.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NON_BLOCKING 1
#define MULTIPROCESSORS 16
#define CAPTURE_THREAD_LOCAL 1
#define BATCH 200     /* launches between two looks at the clock */
#define IN_A_GRAPH 20 /* launches of one graph */
#define PROGRAMMATIC_SERIALIZATION 6

struct attribute { /* CUlaunchAttribute */
    int id, pad;
    union { int allowed; char bytes[64]; } value;
};
struct config { /* CUlaunchConfig */
    unsigned grid[3], block[3], shared;
    void *stream;
    struct attribute *attributes;
    unsigned count;
};

static void *library, *function, *streams[2];
static unsigned blocks, loops;
static uint64_t counter;

static void *need(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "libcuda.so.1 has no %s\n", name);
        exit(1);
    }
    return found;
}

#define CALL(name, ...)                                                                            \
    do {                                                                                           \
        static int (*call)();                                                                      \
        if (!call)                                                                                 \
            *(void **)&call = need(#name);                                                         \
        const int result = call(__VA_ARGS__);                                                      \
        if (result) {                                                                              \
            fprintf(stderr, #name " answered %d\n", result);                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void launch(unsigned us, const unsigned grid[3], void *stream)
{
    void *parameters[] = {&us, &loops, &counter};
    CALL(cuLaunchKernel, function, grid[0], grid[1], grid[2], 128u, 1u, 1u, 0u, stream, parameters,
         (void **)0);
}

/* --- the modes: BATCH launches each ---------------------------------------------------------------- */

static const unsigned *all(void)
{
    static unsigned grid[3] = {0, 1, 1};
    grid[0] = blocks;
    return grid;
}

static void same(unsigned us)
{
    for (int i = 0; i < BATCH; i++)
        launch(us, all(), streams[0]);
}

static void by_turns(unsigned us)
{
    for (int i = 0; i < BATCH; i++)
        launch(us, all(), streams[i % 2]);
}

/* 4096 shapes, none of them large. */
static void new_grids(unsigned us)
{
    static unsigned next;
    for (int i = 0; i < BATCH; i++, next++) {
        const unsigned grid[3] = {1 + next % 16, 1 + next / 16 % 16, 1 + next / 256 % 16};
        launch(us, grid, streams[0]);
    }
}

static void graph(unsigned us)
{
    static void *made, *runnable;
    if (!runnable) {
        CALL(cuStreamBeginCapture_v2, streams[0], CAPTURE_THREAD_LOCAL);
        for (int i = 0; i < IN_A_GRAPH; i++)
            launch(us, all(), streams[0]);
        CALL(cuStreamEndCapture, streams[0], &made);
        CALL(cuGraphInstantiateWithFlags, &runnable, made, 0ull);
    }
    for (int i = 0; i < BATCH / IN_A_GRAPH; i++)
        CALL(cuGraphLaunch, runnable, streams[0]);
}

/* Programmatic dependent launch: a kernel may begin before the one before it has ended. */
static void dependent(unsigned us)
{
    struct attribute attribute = {.id = PROGRAMMATIC_SERIALIZATION, .value.allowed = 1};
    struct config config = {{blocks, 1, 1}, {128, 1, 1}, 0, streams[0], &attribute, 1};
    void *parameters[] = {&us, &loops, &counter};
    for (int i = 0; i < BATCH; i++)
        CALL(cuLaunchKernelEx, &config, function, parameters, (void **)0);
}

static const struct mode { const char *name; void (*run)(unsigned us); } modes[] = {
    {"same", same}, {"streams", by_turns}, {"grids", new_grids}, {"graph", graph}, {"pdl", dependent},
};

/* --------------------------------------------------------------------------------------------------- */

static void start(const char *file)
{
    char *code = calloc(1, 1 << 16);
    FILE *stream = fopen(file, "r");
    void *context, *module;
    int device, count;
    if (!stream || !fread(code, 1, (1 << 16) - 1, stream)) {
        perror(file);
        exit(1);
    }
    fclose(stream);
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    CALL(cuInit, 0u);
    CALL(cuDeviceGet, &device, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, device);
    CALL(cuCtxSetCurrent, context);
    CALL(cuDeviceGetAttribute, &count, MULTIPROCESSORS, device);
    CALL(cuModuleLoadData, &module, code);
    CALL(cuModuleGetFunction, &function, module, "work");
    for (int i = 0; i < 2; i++)
        CALL(cuStreamCreate, &streams[i], (unsigned)NON_BLOCKING);
    blocks = (unsigned)count;
}

static double measure(const char *word, double seconds)
{
    const char *us = strchr(word, ':');
    for (size_t i = 0; us && i < sizeof modes / sizeof *modes; i++) {
        if (strlen(modes[i].name) != (size_t)(us - word) ||
            strncmp(modes[i].name, word, (size_t)(us - word)))
            continue;
        const unsigned length = (unsigned)atoi(us + 1);
        modes[i].run(length); /* the first ones load code and learn */
        CALL(cuCtxSynchronize);
        long launches = 0;
        const double began = now();
        while (now() - began < seconds) {
            modes[i].run(length);
            launches += BATCH;
            /* The queue must not hide what launching takes, nor end much later than the last launch. */
            if (length || launches % (BATCH * 5) == 0)
                CALL(cuCtxSynchronize);
        }
        CALL(cuCtxSynchronize);
        return (now() - began) * 1e6 / (double)launches;
    }
    fprintf(stderr, "%s: not a MODE:US\n", word);
    exit(1);
}

int main(int count, char **words)
{
    if (count < 5) {
        fprintf(stderr, "rates PTX SECONDS LOOPS MODE:US ...\n");
        return 2;
    }
    start(words[1]);
    const double seconds = atof(words[2]);
    loops = (unsigned)atoi(words[3]);
    for (int i = 4; i < count; i++) {
        printf("%s\"%s\": %.3f", i == 4 ? "{" : ", ", words[i], measure(words[i], seconds));
        fflush(stdout);
    }
    printf("}\n");
    return 0;
}
