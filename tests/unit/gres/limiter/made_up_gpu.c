/* The clock and the GPU that the limiter is linked with here. The GPU runs the kernels of one stream one
 * after the other, those of several streams side by side. */
#include "made_up_gpu.h"

#include "clock.h"
#include "cuda_device.h"
#include "cuda_graphs.h"
#include "limiter.h"
#include "trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RAN 3000000
#define RELAXED 2

int64_t now = 1000 * S;
double slower = 1, gpu_clock = 1;
int64_t deepest;
static int64_t stream_end[STREAMS];
int capturing[STREAMS], somebody_captures, unmeasurable;
static int capture_mode;
int64_t sleeps, slept, events, records, queries, waits, loading, latency, event_takes;
int interrupts, blocking;
int64_t cancel_at;
const char *terms;
static int64_t launches;
static struct {
    int64_t start, end;
} ran[RAN];
struct slice the_slice = {.count = 1, .device = {{.uuid = "GPU-1", .sm_percent = 25}}};
static char context;

/* --- what the limiter is linked with ----------------------------------------------------------- */

const struct slice *slice(void) { return &the_slice; }
int current_device(void) { return 0; }
CUcontext current_context(void) { return (CUcontext)&context; }
CUresult context_device(CUcontext of, CUdevice *ordinal) { return (void)of, *ordinal = 0; }
int slice_find(const char *uuid) { return strcmp(uuid, the_slice.device->uuid) ? -1 : 0; }
int trace_level;
void trace_count(enum trace_event event, uint64_t amount) { (void)event, (void)amount; }
CUresult graph_launch(const char *function, CUresult (*real)(CUgraphExec, CUstream),
                      CUgraphExec executable, CUstream stream)
{
    (void)function;
    return executable ? real(executable, stream) : CUDA_ERROR_OUT_OF_MEMORY;
}
static void write_load(void);

int64_t clock_now(void)
{
    if (terms)
        write_load();
    return now;
}

static void cancel(void)
{
    const int64_t zero = 0;
    FILE *file = fopen(SLIPWAY_COUNTERS, "r+");
    if (!file || fseek(file, SLIPWAY_LIMITER_OFFSET, SEEK_SET) || fwrite(&zero, 8, 1, file) != 1)
        wrong("no counters");
    fclose(file);
    cancel_at = 0;
}

static void write_load(void)
{
    static int64_t written;
    char text[400];
    if (now - written < S)
        return;
    FILE *from = fopen(terms, "r"), *to = fopen(SLIPWAY_LOAD, "w");
    if (!from || !to)
        wrong("no terms");
    text[fread(text, 1, sizeof text - 1, from)] = 0;
    fprintf(to, "version=1\ntime=%lld\n%s", (long long)now, text);
    fclose(from);
    fclose(to);
    written = now;
}

int clock_sleep(int64_t ns)
{
    if (cancel_at && now > cancel_at)
        cancel();
    sleeps++;
    slept += ns;
    now += ns + 55 * US; /* timers are late */
    return interrupts && interrupts--;
}

/* --- the driver -------------------------------------------------------------------------------- */

void wrong(const char *what)
{
    fprintf(stderr, "limiter_rig: %s\n", what);
    exit(1);
}

/* In CUDA's strict mode such a question ends a capture, also that of another thread. */
static void ask(void)
{
    now += 200;
    queries++;
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

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void set_blocking(int state)
{
    pthread_mutex_lock(&mutex);
    blocking = state;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

void wait_for_blocking(int state)
{
    pthread_mutex_lock(&mutex);
    while (blocking != state)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static int event_record(int64_t *event, intptr_t stream)
{
    if (stream == BLOCKED && blocking == 1) { /* its queue is full */
        set_blocking(2);
        wait_for_blocking(0);
    }
    now += 500;
    records++;
    if (capturing[stream])
        wrong("an event went into a graph");
    *event = stream_end[stream] = latest(stream_end[stream], now) + event_takes;
    return stream == unmeasurable ? 400 : 0;
}

static int event_query(const int64_t *event)
{
    ask();
    return *event <= now ? 0 : 600;
}

static int event_elapsed(float *ms, const int64_t *start, const int64_t *end)
{
    *ms = (float)((double)(*end - *start) / 1e6 * gpu_clock);
    return 0;
}

static int stream_query(intptr_t stream)
{
    ask();
    return stream_end[stream] <= now ? 0 : 600;
}

void synchronise(intptr_t stream)
{
    const int64_t began = limiter_before_wait((void *)stream);
    waits++;
    now = latest(now, stream_end[stream]);
    limiter_after_wait((void *)stream, began);
}

void synchronise_all(void)
{
    const int64_t began = limiter_before_wait(NULL);
    waits++;
    for (int stream = 0; stream < STREAMS; stream++)
        now = latest(now, stream_end[stream]);
    limiter_after_wait(NULL, began);
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

static CUresult run(intptr_t stream, int64_t us)
{
    now += 4 * US + loading;
    if (capturing[stream])
        return CUDA_SUCCESS;
    if (us < 0)
        return CUDA_ERROR_INVALID_VALUE;
    int64_t start = latest(stream_end[stream], now + latency);
    ran[launches].start = start;
    ran[launches++].end = start + us * US;
    stream_end[stream] = start + (int64_t)((double)(us * US) * slower);
    deepest = latest(deepest, stream_end[stream] - now);
    if (launches == RAN)
        wrong("too many launches");
    return CUDA_SUCCESS;
}

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

static CUresult driver_ex(const intptr_t *config, intptr_t f, int64_t **parameters, void **extra)
{
    (void)extra;
    return run(config[4] ? config[4] : LEGACY, parameters ? **parameters : f); /* hStream lies behind eight numbers of 32 bits, with a gap */
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
    {"cuStreamQuery", stream_query},
    {"cuStreamIsCapturing", stream_is_capturing},
    {"cuThreadExchangeStreamCaptureMode", exchange_capture_mode},
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

static int by_start(const void *one, const void *other)
{
    const int64_t *left = one, *right = other;
    return (*left > *right) - (*left < *right);
}

void print_share(int64_t began)
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
