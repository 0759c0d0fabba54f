#include "meter.h"

#include "real.h"

#include <pthread.h>
#include <string.h>

#define NOT_READY 600      /* CUDA_ERROR_NOT_READY */
#define WITH_TIMES 0       /* CU_EVENT_DEFAULT */
#define CAPTURE_RELAXED 2  /* CU_STREAM_CAPTURE_MODE_RELAXED */
#define KINDS 4096
#define PLACES 4           /* where each of them may be */

static struct {
    int (*create)(void **event, unsigned flags);
    int (*destroy)(void *event);
    int (*record)(void *event, void *stream);
    int (*query)(void *event);
    int (*elapsed)(float *ms, void *start, void *end);
    int (*synchronize)(void *stream);
    int (*is_capturing)(void *stream, int *status);
    int (*capture_mode)(int *mode);
} cuda;

/* The last duration of one function with one grid size. */
static struct kind {
    uintptr_t work;
    int64_t took;     /* ns; -1: not known yet */
    uint32_t skipped; /* launches since the last one that was measured */
    uint32_t stride;
} kinds[KINDS];

static void load(void)
{
    cuda.create = real_function("cuEventCreate");
    cuda.destroy = real_function("cuEventDestroy_v2");
    cuda.record = real_function("cuEventRecord");
    cuda.query = real_function("cuEventQuery");
    cuda.elapsed = real_function("cuEventElapsedTime");
    cuda.synchronize = real_function("cuStreamSynchronize");
    cuda.is_capturing = real_function("cuStreamIsCapturing");          /* CUDA 10.0 */
    cuda.capture_mode = real_function("cuThreadExchangeStreamCaptureMode"); /* 10.1 */
}

static void load_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
}

/* While a thread captures in strict mode, the driver treats queries of other streams' events as errors
 * and invalidates the capture. Ours are harmless. */
static int relax(void)
{
    int mode = CAPTURE_RELAXED;
    if (cuda.capture_mode)
        cuda.capture_mode(&mode);
    return mode;
}

static void restore(int mode)
{
    if (cuda.capture_mode)
        cuda.capture_mode(&mode);
}

int meter_capturing(void *stream)
{
    int status = 0;
    load_once();
    return cuda.is_capturing && (cuda.is_capturing(stream, &status) || status);
}

static struct kind *kind_of(uintptr_t work)
{
    struct kind *first = &kinds[((work * UINT64_C(0x9E3779B97F4A7C15)) >> 54) * PLACES];
    struct kind *kind = first;
    while (kind < first + PLACES && kind->work && kind->work != work)
        kind++;
    if (kind == first + PLACES)
        kind = first + work / 64 % PLACES; /* the set is full: an old kind is replaced */
    if (kind->work != work)
        *kind = (struct kind){.work = work, .took = -1};
    return kind;
}

/* Random, so that no regular pattern of a program hides its long kernels among short ones. */
static uint32_t next_stride(void)
{
    static uint32_t state = 2463534242u;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % (2 * METER_STRIDE - 1);
}

/* Kernels that may overlap are all measured: their total cannot be inferred from a sample. */
static int is_due(struct kind *kind, int same_stream)
{
    if (same_stream && kind->took >= 0 && kind->took < METER_SHORT && kind->skipped < kind->stride)
        return 0;
    kind->stride = next_stride();
    return 1;
}

static int start_bracket(struct bracket *bracket, void *stream)
{
    if (!bracket->start && cuda.create(&bracket->start, WITH_TIMES))
        return METER_FAILED;
    if (!bracket->end && cuda.create(&bracket->end, WITH_TIMES))
        return METER_FAILED;
    return cuda.record(bracket->start, stream) ? METER_FAILED : 0;
}

int meter_begin(struct meter *meter, void *stream, uintptr_t work, int64_t now)
{
    struct kind *kind = kind_of(work);
    int number = 0, same_stream = stream == meter->stream;
    meter->stream = stream;
    if (meter->open == METER_OPEN || !is_due(kind, same_stream)) {
        kind->skipped++;
        return METER_SKIPPED;
    }
    while (meter->bracket[number].state != BRACKET_FREE)
        number++;
    struct bracket *bracket = &meter->bracket[number];
    int mode = relax(), failed = start_bracket(bracket, stream);
    restore(mode);
    if (failed)
        return METER_FAILED;
    bracket->state = BRACKET_BEGUN;
    bracket->given_up = 0;
    bracket->begun = now;
    bracket->work = work;
    bracket->expected = kind->took;
    bracket->weight = kind->skipped + 1;
    kind->skipped = 0;
    meter->order[meter->open++] = (unsigned char)number;
    return number;
}

static void free_bracket(struct meter *meter, int place)
{
    meter->bracket[meter->order[place]].state = BRACKET_FREE;
    meter->open--;
    memmove(meter->order + place, meter->order + place + 1, (size_t)(meter->open - place));
}

int meter_end(struct meter *meter, int number, void *stream, int refused, int64_t now)
{
    struct bracket *bracket = &meter->bracket[number];
    if (bracket->state != BRACKET_BEGUN)
        return 0; /* the context was closed meanwhile */
    if (!refused && !cuda.record(bracket->end, stream)) {
        bracket->state = BRACKET_ENDED;
        bracket->call = now - bracket->begun;
        return 0;
    }
    for (int place = 0; place < meter->open; place++)
        if (meter->order[place] == number)
            free_bracket(meter, place);
    return refused ? 0 : METER_FAILED;
}

static int64_t between(void *start, void *end)
{
    float ms = 0;
    return cuda.elapsed(&ms, start, end) ? 0 : (int64_t)((double)ms * 1e6);
}

/* Streams run concurrently, and no moment may be charged twice: only what lies after the latest end seen
 * so far is new. */
static int64_t uncounted_time(struct meter *meter, struct bracket *bracket)
{
    int64_t took = between(bracket->start, bracket->end);
    if (bracket->expected < 0) /* the first launch loads the code first, and the GPU is idle meanwhile */
        took = took > bracket->call ? took - bracket->call : 0;
    int64_t beyond = meter->last ? between(meter->last, bracket->end) : INT64_MAX;
    kind_of(bracket->work)->took = took;
    if (beyond <= 0)
        return 0;
    void *last = meter->last;
    meter->last = bracket->end;
    bracket->end = last; /* null at first: created when needed */
    return (beyond < took ? beyond : took) * bracket->weight;
}

struct use meter_poll(struct meter *meter, int64_t now)
{
    struct use use = {0, now};
    int mode = relax();
    for (int place = 0; place < meter->open;) {
        struct bracket *bracket = &meter->bracket[meter->order[place]];
        int result = bracket->state == BRACKET_BEGUN ? NOT_READY : cuda.query(bracket->end);
        if (result != NOT_READY) {
            use.ns += result ? 0 : uncounted_time(meter, bracket);
            use.since = bracket->begun < use.since ? bracket->begun : use.since;
            free_bracket(meter, place);
        } else if (bracket->given_up) {
            place++; /* what came after it may have ended */
        } else {
            break;
        }
    }
    restore(mode);
    meter->polled = now;
    return use;
}

int meter_crowded(const struct meter *meter, int64_t now)
{
    int unknown = 0;
    int64_t expected = 0, oldest = now;
    for (int place = 0; place < meter->open; place++) {
        const struct bracket *bracket = &meter->bracket[meter->order[place]];
        if (bracket->given_up)
            continue;
        if (oldest == now)
            oldest = bracket->begun;
        unknown += bracket->expected < 0;
        expected += bracket->expected > 0 ? bracket->expected * bracket->weight : 0;
    }
    return unknown >= METER_UNKNOWN || expected > METER_WINDOW || now - oldest > METER_WINDOW ||
           (oldest != now && meter->open == METER_OPEN);
}

void meter_give_up(struct meter *meter)
{
    for (int place = 0; place < meter->open; place++)
        meter->bracket[meter->order[place]].given_up = 1;
}

void meter_wait(void *stream)
{
    int mode = relax();
    cuda.synchronize(stream);
    restore(mode);
}

static void destroy(void *event)
{
    if (event)
        cuda.destroy(event);
}

struct use meter_close(struct meter *meter, int64_t now)
{
    struct use use = meter_poll(meter, now);
    if (meter->open) {
        int64_t begun = meter->bracket[meter->order[0]].begun;
        use.ns += now - begun;
        use.since = begun < use.since ? begun : use.since;
    }
    for (int number = 0; number < METER_OPEN; number++) {
        destroy(meter->bracket[number].start);
        destroy(meter->bracket[number].end);
    }
    destroy(meter->last);
    memset(meter, 0, sizeof *meter);
    return use;
}
