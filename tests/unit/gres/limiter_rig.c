/* The limiter on a GPU and a clock that are made up, so that a minute passes in milliseconds and always
 * in the same way:  limiter_rig SCENARIO [NUMBER]  prints lines of "name value".
 *
 * The GPU runs the kernels of one stream one after the other, those of several streams side by side.
 * A function is a number: the microseconds that it takes, unless its first parameter says otherwise. */
#include "cuda_shim.h"
#include "limiter.h"
#include "share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define US INT64_C(1000)
#define MS (1000 * US)
#define S (1000 * MS)
#define STREAMS 16
#define RAN 3000000
#define LEGACY 1
#define PER_THREAD 2
#define RELAXED 2

static int64_t now = 1000 * S;
static double slower = 1; /* a neighbour's kernels take turns with ours */
static int64_t stream_end[STREAMS], deepest;
static int capturing[STREAMS], somebody_captures, capture_mode, unmeasurable;
static int64_t naps, napped, events, waits, launches;
static struct {
    int64_t start, end;
} ran[RAN];
static struct slice the_slice = {.count = 1, .device = {{.uuid = "GPU-1", .sm_percent = 25}}};
static char context;

/* --- what the limiter is linked with ----------------------------------------------------------- */

const struct slice *slice(void) { return &the_slice; }
int current_device(void) { return 0; }
int graph_memory_before(void *executable) { return executable ? 0 : CUDA_ERROR_OUT_OF_MEMORY; }
void graph_memory_after(void *executable) { (void)executable; }
int64_t clock_now(void) { return now; }

void clock_nap(int64_t ns)
{
    naps++;
    napped += ns;
    now += ns + 55 * US; /* timers are late */
}

/* --- the driver -------------------------------------------------------------------------------- */

static void wrong(const char *what)
{
    fprintf(stderr, "limiter_rig: %s\n", what);
    exit(1);
}

/* In CUDA's strict mode such a question ends a capture, also that of another thread. */
static void ask(void)
{
    now += 200;
    if (somebody_captures && capture_mode != RELAXED)
        wrong("a question about an event spoiled a capture");
}

static int64_t latest(int64_t one, int64_t other) { return one > other ? one : other; }

static int event_create(int64_t **event, unsigned flags)
{
    (void)flags;
    ask();
    events++;
    *event = calloc(1, sizeof **event);
    return 0;
}

static int event_destroy(int64_t *event)
{
    events--;
    free(event);
    return 0;
}

static int event_record(int64_t *event, intptr_t stream)
{
    now += 500;
    if (capturing[stream])
        wrong("an event went into a graph");
    *event = latest(stream_end[stream], now);
    return stream == unmeasurable ? 400 : 0;
}

static int event_query(const int64_t *event)
{
    ask();
    return *event <= now ? 0 : 600;
}

static int event_elapsed(float *ms, const int64_t *start, const int64_t *end)
{
    *ms = (float)((double)(*end - *start) / 1e6);
    return 0;
}

static int stream_synchronize(intptr_t stream)
{
    ask();
    waits++;
    now = latest(now, stream_end[stream]);
    return 0;
}

static int stream_is_capturing(intptr_t stream, int *status)
{
    *status = capturing[stream];
    return 0;
}

static int exchange_capture_mode(int *mode)
{
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return 0;
}

static int current_context_of_all(void **current)
{
    *current = &context;
    return 0;
}

static int current_gpu(int *device)
{
    *device = 0;
    return 0;
}

static CUresult run(intptr_t stream, int64_t us)
{
    now += 4 * US;
    if (capturing[stream])
        return CUDA_SUCCESS;
    if (us < 0)
        return CUDA_ERROR_INVALID_VALUE;
    int64_t start = latest(stream_end[stream], now);
    ran[launches].start = start;
    ran[launches++].end = start + us * US;
    stream_end[stream] = start + (int64_t)((double)(us * US) * slower);
    deepest = latest(deepest, stream_end[stream] - now);
    if (launches == RAN)
        wrong("too many launches");
    return CUDA_SUCCESS;
}

#define KERNEL intptr_t f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned m
#define UNUSED (void)x, (void)y, (void)z, (void)a, (void)b, (void)c, (void)m

static CUresult driver_kernel(KERNEL, intptr_t stream, int64_t **parameters, void **extra)
{
    UNUSED, (void)extra;
    return run(stream ? stream : LEGACY, parameters ? **parameters : f);
}

static CUresult driver_kernel_ptsz(KERNEL, intptr_t stream, int64_t **parameters, void **extra)
{
    UNUSED, (void)extra;
    return run(stream ? stream : PER_THREAD, parameters ? **parameters : f);
}

static CUresult driver_graph(intptr_t graph, intptr_t stream) { return run(stream ? stream : LEGACY, graph); }

static CUresult driver_graph_ptsz(intptr_t graph, intptr_t stream)
{
    return run(stream ? stream : PER_THREAD, graph);
}

static CUresult driver_ex(const intptr_t *config, intptr_t f, void **parameters, void **extra)
{
    (void)parameters, (void)extra;
    return run(config[4] ? config[4] : LEGACY, f); /* hStream lies behind eight numbers of 32 bits, with a gap */
}

static CUresult driver_multi(const intptr_t *list, unsigned count, unsigned flags)
{
    (void)count, (void)flags;
    return run(list[5] ? list[5] : LEGACY, list[0]);
}

static CUresult driver_old(intptr_t f) { return run(LEGACY, f); }
static CUresult driver_grid(intptr_t f, int x, int y) { return (void)x, (void)y, run(LEGACY, f); }

static CUresult driver_async(intptr_t f, int x, int y, intptr_t stream)
{
    return (void)x, (void)y, run(stream ? stream : LEGACY, f);
}

static const struct {
    const char *name;
    void *function;
} driver[] = {
    {"cuEventCreate", event_create},
    {"cuEventDestroy_v2", event_destroy},
    {"cuEventRecord", event_record},
    {"cuEventQuery", event_query},
    {"cuEventElapsedTime", event_elapsed},
    {"cuStreamSynchronize", stream_synchronize},
    {"cuStreamIsCapturing", stream_is_capturing},
    {"cuThreadExchangeStreamCaptureMode", exchange_capture_mode},
    {"cuCtxGetCurrent", current_context_of_all},
    {"cuCtxGetDevice", current_gpu},
    {"cuLaunchKernel", driver_kernel},
    {"cuLaunchKernel_ptsz", driver_kernel_ptsz},
    {"cuLaunchKernelEx", driver_ex},
    {"cuLaunchKernelEx_ptsz", driver_ex},
    {"cuLaunchCooperativeKernel", driver_kernel},
    {"cuLaunchCooperativeKernel_ptsz", driver_kernel_ptsz},
    {"cuLaunchCooperativeKernelMultiDevice", driver_multi},
    {"cuGraphLaunch", driver_graph},
    {"cuGraphLaunch_ptsz", driver_graph_ptsz},
    {"cuLaunch", driver_old},
    {"cuLaunchGrid", driver_grid},
    {"cuLaunchGridAsync", driver_async},
};

void *real_function(const char *name)
{
    for (size_t index = 0; index < sizeof driver / sizeof *driver; index++)
        if (!strcmp(driver[index].name, name))
            return driver[index].function;
    return NULL;
}

/* --- a program --------------------------------------------------------------------------------- */

typedef CUresult kernel_function(KERNEL, intptr_t, int64_t **, void **);
extern CUresult cuGraphLaunch(intptr_t, intptr_t);
extern CUresult cuLaunchKernelEx(const intptr_t *, intptr_t, void **, void **);
static kernel_function *launch_kernel;

static CUresult launch(int64_t us, intptr_t stream)
{
    return launch_kernel(us, 8, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static CUresult launch_as(intptr_t f, int64_t us, intptr_t stream)
{
    int64_t *parameters[] = {&us};
    return launch_kernel(f, 8, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
}

static int by_start(const void *one, const void *other)
{
    const int64_t *left = one, *right = other;
    return (*left > *right) - (*left < *right);
}

/* The percentage of the time since `began` in which at least one kernel ran. */
static void print_share(int64_t began)
{
    int64_t busy = 0, until = began;
    qsort(ran, (size_t)launches, sizeof *ran, by_start);
    for (int64_t index = 0; index < launches; index++) {
        int64_t start = latest(ran[index].start, until), end = ran[index].end < now ? ran[index].end : now;
        if (end > start)
            busy += end - start;
        until = latest(until, end);
    }
    printf("share %.2f\n", 100. * (double)busy / (double)(now - began));
}

static void *find(const char *name)
{
    for (const struct hook *hook = launch_hooks; hook->name; hook++)
        if (!strcmp(hook->name, name))
            return hook->wrapper;
    wrong("not wrapped");
    return NULL;
}

static void fill(void)
{
    for (const struct hook *hook = launch_hooks; hook->name; hook++)
        *hook->real = real_function(hook->name);
    launch_kernel = find("cuLaunchKernel");
}

/* Launches kernels as fast as it may, for a minute of kernels, or some seconds of very short ones. */
static void keep_busy(int64_t us, int streams)
{
    for (int64_t end = now + (us < 100 ? 5 * S : 60 * S), count = 0; now < end; count++)
        launch(us, streams == 1 ? 0 : 3 + count % streams);
}

static void mixed(void) /* one function: mostly short, now and then long, in a rhythm */
{
    for (int64_t end = now + 60 * S, count = 0; now < end; count++)
        launch_as(7, count % 16 ? 10 : 20000, 0);
}

static void rare(void) /* 10 us in every 2 ms: less than the share */
{
    for (int64_t end = now + 20 * S; now < end; now += 2 * MS)
        launch(10, 0);
}

static void flood(void) /* much work at once, all of it unknown before */
{
    for (int64_t count = 0; count < 1000; count++)
        launch(100000 + count, 0);
    printf("deepest_ms %lld\n", (long long)(deepest / MS));
}

static int64_t idle_then_busy(void)
{
    launch(10, 0);
    now += 3600 * S;
    int64_t began = now;
    while (now < began + S)
        launch(1000, 0);
    return began;
}

/* A kernel that waits for a later launch, as persistent ones do, must not wait for ever. */
static void persistent(void)
{
    launch(3600 * 1000000ll, 3);
    int64_t began = now;
    for (int count = 0; count < 1000; count++)
        launch(10, 4);
    printf("launched_after_ms %lld\n", (long long)((now - began) / MS));
}

static void captured(void)
{
    capturing[3] = somebody_captures = 1;
    for (int count = 0; count < 1000; count++)
        launch(50000, 3);
    printf("captured_events %lld\ncaptured_naps %lld\n", (long long)events, (long long)naps);
    for (int count = 0; count < 1000; count++)
        launch(10, 4); /* another stream is measured meanwhile */
    capturing[3] = somebody_captures = 0;
    CUresult (*graph)(intptr_t, intptr_t) = find("cuGraphLaunch");
    for (int64_t end = now + 60 * S; now < end;)
        graph(50000, 3);
}

static void refused(void)
{
    for (int count = 0; count < 1000; count++)
        if (launch(-1, 0) != CUDA_ERROR_INVALID_VALUE)
            wrong("the driver's answer was lost");
}

/* The program waits, then ends; the next one of the session comes at the same moment. */
static void debt(void)
{
    launch(1000000, 0);
    now += 1000500 * US;
    limiter_look();
    pid_t child = fork();
    if (!child) {
        int64_t began = now;
        launch(10, 0);
        printf("waited_ms %lld\n", (long long)((now - began) / MS));
        exit(0);
    }
    waitpid(child, NULL, 0);
}

static void contexts(void)
{
    int64_t began = now, before = events;
    while (now < began + 60 * S) {
        for (int count = 0; count < 10; count++)
            launch(5000, 0);
        limiter_forget(0);
        if (events != before)
            wrong("events of a context that has ended were kept");
    }
}

/* By any way to launch. */
static void gate(const char *name)
{
    intptr_t config[8] = {[4] = 5}, list[8] = {200000, [5] = 6};
    CUresult (*call)() = (CUresult(*)())find(name);
    for (int64_t end = now + 60 * S; now < end;) {
        if (strstr(name, "MultiDevice"))
            call(list, 1, 0);
        else if (strstr(name, "KernelEx"))
            call(config, (intptr_t)200000, NULL, NULL);
        else if (strstr(name, "Graph"))
            call((intptr_t)200000, (intptr_t)0);
        else if (strstr(name, "Kernel"))
            call((intptr_t)200000, 8, 1, 1, 32, 1, 1, 0, (intptr_t)0, NULL, NULL);
        else
            call((intptr_t)200000, 8, 8, (intptr_t)0);
    }
}

static void list_gates(void)
{
    for (const struct hook *hook = launch_hooks; hook->name; hook++)
        printf("%s 1\n", hook->name);
}

static void play(const char *name, int64_t us)
{
    int64_t began = now;
    if (!strcmp(name, "busy"))
        keep_busy(us, 1);
    else if (!strcmp(name, "streams"))
        keep_busy(us, 4);
    else if (!strcmp(name, "contended"))
        slower = 1.25, keep_busy(us, 1);
    else if (!strcmp(name, "unmeasurable"))
        unmeasurable = LEGACY, keep_busy(us, 1);
    else if (!strcmp(name, "whole"))
        the_slice.device->sm_percent = 100, keep_busy(us, 1);
    else if (!strcmp(name, "mps"))
        the_slice.compute = COMPUTE_MPS, keep_busy(us, 1);
    else if (!strcmp(name, "mixed"))
        mixed();
    else if (!strcmp(name, "rare"))
        rare();
    else if (!strcmp(name, "flood"))
        flood();
    else if (!strcmp(name, "idle"))
        began = idle_then_busy();
    else if (!strcmp(name, "persistent"))
        persistent();
    else if (!strcmp(name, "captured"))
        captured();
    else if (!strcmp(name, "refused"))
        refused();
    else if (!strcmp(name, "debt"))
        debt();
    else if (!strcmp(name, "contexts"))
        contexts();
    else if (!strcmp(name, "gates"))
        list_gates();
    else
        gate(name);
    print_share(began);
}

int main(int count, char **arguments)
{
    if (count < 2)
        wrong("which scenario?");
    setvbuf(stdout, NULL, _IOLBF, 0);
    fill();
    play(arguments[1], count > 2 ? atoll(arguments[2]) : 0);
    printf("events %lld\nwaits %lld\nnapped_ms %lld\n", (long long)events, (long long)waits,
           (long long)(napped / MS));
    return 0;
}
