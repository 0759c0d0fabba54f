#include "meters.h"

#include "clock.h"
#include "cuda_device.h"
#include "flight.h"
#include "load.h"
#include "share.h"
#include "shim.h"
#include "slice.h"
#include "trace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define METERS 16 /* contexts; programs have one for each GPU, libraries sometimes another one */
#define PATIENCE INT64_C(1000000000) /* ns that the end of a context waits for work in flight */
#define MOST_AHEAD INT64_C(1000000000) /* ns: small against SHARE_DEBT, above which nothing is charged */
#define SHORT_SLEEP INT64_C(50000)   /* ns: as long as the kernel takes to wake up a thread */

struct shared {
    share_tat tat;
    _Atomic int64_t measured; /* ns in total; root compares it with what the session really used */
    char padding[64 - 16];    /* to a cache line */
};
_Static_assert(sizeof(struct shared) == 64, "as portal/node/gpu/watchdog/neighbours.py reads it");
_Static_assert(sizeof(struct shared) * SLIPWAY_MAX_DEVICES <= SLIPWAY_LIMITER_SIZE, "the shares fit");

pthread_mutex_t meters_lock = PTHREAD_MUTEX_INITIALIZER;
static struct meter meters[METERS];
static struct shared *shares; /* one for each device of the slice, shared by the session's processes */
static int meters_needed;

/* --- beginning and end of the process --- */

/* A child cannot use its parent's contexts; it begins with none. */
static void meters_reset_in_child(void)
{
    pthread_mutex_init(&meters_lock, 0);
    memset(meters, 0, sizeof meters);
}

/* Continuing would mean to run without limits. */
static void meters_end_process(void)
{
    static const char line[] = "slipway: " SLIPWAY_COUNTERS " cannot be used, so nothing can run on the "
                               "GPU. Start the session again.\n";
    ssize_t ignored = write(2, line, sizeof line - 1);
    (void)ignored;
    _exit(1);
}

static void meters_close_at_exit(void);

static void meters_attach(void)
{
    int file = open(SLIPWAY_COUNTERS, O_RDWR | O_CLOEXEC);
    void *map = mmap(0, SLIPWAY_COUNTERS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
        meters_end_process();
    close(file);
    pthread_atfork(0, 0, meters_reset_in_child);
    atexit(meters_close_at_exit);
    shares = (struct shared *)((char *)map + SLIPWAY_LIMITER_OFFSET);
}

static int meters_is_limited(int device)
{
    return device >= 0 && slice()->device[device].sm_percent < 100;
}

static void meters_prepare(void)
{
    for (int device = 0; device < slice()->count; device++)
        meters_needed |= slice()->compute == COMPUTE_LIMITER && meters_is_limited(device);
    if (meters_needed)
        meters_attach();
}

int meters_is_needed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, meters_prepare);
    return meters_needed;
}

/* --- the share --- */

struct terms {
    int percent, charge;
};

static struct terms meters_terms(int device)
{
    struct load load;
    if (load_of(device, &load))
        return (struct terms){slice()->device[device].sm_percent, 1000};
    return (struct terms){load.percent, load.charge};
}

/* A random part of `ns`. Two sessions with the same program would otherwise synchronise: all that they
 * launch would be measured double, since it would always run at the same time. What is launched early is
 * charged like the rest, only later. */
static int64_t meters_random_part(int64_t ns)
{
    static uint64_t state;
    if (!state)
        state = (uint64_t)clock_now() | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ns / 1024 * (int64_t)(state % 1024);
}

void meters_charge(struct meter *meter, struct use use, int64_t now)
{
    if (use.ns <= 0)
        return;
    const struct terms terms = meters_terms(meter->device);
    const int64_t ns = use.ns * terms.charge / 1000;
    atomic_fetch_add(&shares[meter->device].measured, use.ns);
    share_charge(&shares[meter->device].tat, terms.percent, ns, use.since, now);
    meter->ahead = meters_random_part(ns * 100 / terms.percent);
    if (meter->ahead > MOST_AHEAD)
        meter->ahead = MOST_AHEAD;
}

int64_t meters_wait(const struct meter *meter, int64_t now)
{
    return share_wait(&shares[meter->device].tat, now);
}

int meters_percent(const struct meter *meter)
{
    return meters_terms(meter->device).percent;
}

/* --- calls to the driver without the lock --- */

static void meters_leave(struct meter *meter)
{
    meter->users++;
    pthread_mutex_unlock(&meters_lock);
}

/* False if the context ended meanwhile, and with it all that the caller knows about the meter. */
static int meters_return(struct meter *meter, unsigned life)
{
    pthread_mutex_lock(&meters_lock);
    if (meter->life != life)
        return 0;
    meter->users--;
    return 1;
}

int meters_look(struct meter *meter, int64_t now)
{
    struct look look;
    const unsigned life = meter->life;
    if (meter->looking)
        return 1;
    meter->polled = now;
    if (meter->stretches.open) {
        meter->looking = 1;
        stretches_choose(&meter->stretches, &look, now);
        meters_leave(meter);
        stretches_ask(&look);
        if (!meters_return(meter, life))
            return 0;
        meter->looking = 0;
        flight_advance(meter, &look, now);
        meters_charge(meter, stretches_settle(&meter->stretches, &look, now), now);
    }
    meters_charge(meter, (struct use){meter->owed, now}, now);
    meter->owed = 0;
    return 1;
}

int meters_ask(struct meter *meter, int stream, int64_t now)
{
    const unsigned life = meter->life;
    void *handle = meter->stream[stream].handle;
    meters_leave(meter);
    enum events_state state = events_stream_state(handle);
    if (!meters_return(meter, life))
        return 0;
    if (state == EVENTS_DONE && !meters_look(meter, now)) /* first what was in front of the tail */
        return 0;
    meters_charge(meter, (struct use){meter_answer(meter, stream, state, now), now}, now);
    return 1;
}

int meters_record(struct meter *meter, int stream, struct mark *mark, int stretch)
{
    const unsigned life = meter->life;
    void *handle = meter->stream[stream].handle;
    meters_leave(meter);
    if (!mark->event)
        mark->event = events_create();
    int failed = !mark->event || events_record(mark->event, handle);
    trace_add(failed ? TRACE_UNMEASURABLE : TRACE_STRETCHES, 1);
    if (!meters_return(meter, life))
        return 0;
    meter_marked(meter, stream, mark, stretch, failed);
    return 1;
}

/* --- contexts --- */

static void meters_close(struct meter *meter)
{
    const int64_t now = clock_now();
    const int device = meter->device;
    struct use use = meter_close(meter, now);
    const struct terms terms = meters_terms(device);
    if (use.ns > 0)
        atomic_fetch_add(&shares[device].measured, use.ns);
    share_charge(&shares[device].tat, terms.percent, use.ns * terms.charge / 1000, use.since, now);
}

/* Runs before the driver's own exit handler, which was registered earlier. What still runs is charged by
 * the clock, so that a session of many short programs is charged as well. */
static void meters_close_at_exit(void)
{
    if (pthread_mutex_trylock(&meters_lock))
        return; /* another thread is still launching: not worth a hang */
    for (int index = 0; index < METERS; index++) {
        struct meter *meter = &meters[index];
        if (!meter->context || !meters_look(meter, clock_now()))
            continue;
        meter->users++; /* events are not destroyed, which may wait for them */
        meters_close(meter);
    }
    pthread_mutex_unlock(&meters_lock);
}

static struct meter *meters_known(const void *context)
{
    for (int index = 0; index < METERS; index++)
        if (meters[index].context == context)
            return &meters[index];
    return NULL;
}

static struct meter *meters_open(void *context, int device, int cuda_device)
{
    static int next; /* with too many contexts, the oldest one's is reused */
    struct meter *meter = meters_known(context);
    for (int index = 0; index < METERS && !meter; index++)
        meter = meters[index].context ? NULL : &meters[index];
    if (!meter) {
        meter = &meters[next++ % METERS];
        meters_close(meter);
    }
    meter->context = context;
    meter->cuda_device = cuda_device;
    meter->device = device;
    return meter;
}

struct meter *meters_enter(int make)
{
    int cuda_device = -1;
    void *context = current_context();
    pthread_mutex_lock(&meters_lock);
    struct meter *meter = context ? meters_known(context) : NULL;
    if (meter || !context || !make)
        return meter;
    pthread_mutex_unlock(&meters_lock);
    const int device = current_device();
    context_device(context, &cuda_device);
    pthread_mutex_lock(&meters_lock);
    return meters_is_limited(device) ? meters_open(context, device, cuda_device) : NULL;
}

void meters_forget(int cuda_device)
{
    if (!meters_is_needed())
        return;
    pthread_mutex_lock(&meters_lock);
    for (int index = 0; index < METERS; index++) {
        struct meter *meter = &meters[index];
        int64_t waited = 0;
        while (meter->context && meter->cuda_device == cuda_device) {
            if (!meters_look(meter, clock_now()))
                break;
            if ((!meter->stretches.open && !meter->users) || waited >= PATIENCE) {
                meters_close(meter);
                break;
            }
            pthread_mutex_unlock(&meters_lock);
            clock_sleep(SHORT_SLEEP);
            pthread_mutex_lock(&meters_lock);
            waited += SHORT_SLEEP;
        }
    }
    pthread_mutex_unlock(&meters_lock);
}
