#include "limiter.h"

#include "clock.h"
#include "cuda_device.h"
#include "meter.h"
#include "real.h"
#include "share.h"
#include "shim.h"
#include "slice.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define METERS 16
#define POLL_INTERVAL INT64_C(20000)       /* ns between queries to the driver of what has ended */
#define PATIENCE INT64_C(1000000000)       /* ns that a launch waits for those before it */
#define SHORT_SLEEP INT64_C(50000)         /* ns */
#define LONG_SLEEP INT64_C(10000000)       /* ns: others of the session may use its share meanwhile */

struct shared {
    share_tat tat;
    char padding[64 - sizeof(share_tat)]; /* to a cache line */
};
_Static_assert(sizeof(struct shared) * SLIPWAY_MAX_DEVICES <= SLIPWAY_LIMITER_SIZE, "the shares fit");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct meter meters[METERS];
static struct shared *shares; /* one for each device of the slice, shared by the session's processes */
static int (*get_current)(void **context);
static int (*device_of_current)(int *device);

/* A child cannot use its parent's contexts; it begins with none. */
static void reset_in_child(void)
{
    pthread_mutex_init(&lock, 0);
    memset(meters, 0, sizeof meters);
}

static void charge_time(int device, struct use use)
{
    share_charge(&shares[device].tat, slice()->device[device].sm_percent, use.ns, use.since);
}

static void close_meter(struct meter *meter)
{
    int device = meter->device;
    charge_time(device, meter_close(meter, clock_now()));
}

/* Runs before the driver's own exit handler, which was registered earlier. What still runs is charged by
 * the clock, so that a session of many short programs is charged as well. */
static void close_meters_at_exit(void)
{
    if (pthread_mutex_trylock(&lock))
        return; /* another thread is still launching: not worth a hang */
    for (int index = 0; index < METERS; index++)
        if (meters[index].context)
            close_meter(&meters[index]);
    pthread_mutex_unlock(&lock);
}

/* Continuing would mean to run without limits. */
static void end_process(void)
{
    static const char line[] = "slipway: " SLIPWAY_COUNTERS " cannot be used, so nothing can run on the "
                               "GPU. Start the session again.\n";
    ssize_t ignored = write(2, line, sizeof line - 1);
    (void)ignored;
    _exit(1);
}

static void attach(void)
{
    int file = open(SLIPWAY_COUNTERS, O_RDWR | O_CLOEXEC);
    void *map = mmap(0, SLIPWAY_COUNTERS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED)
        end_process();
    close(file);
    get_current = real_function("cuCtxGetCurrent");
    device_of_current = real_function("cuCtxGetDevice");
    pthread_atfork(0, 0, reset_in_child);
    atexit(close_meters_at_exit);
    shares = (struct shared *)((char *)map + SLIPWAY_LIMITER_OFFSET);
}

static int is_limited(int device)
{
    return device >= 0 && slice()->device[device].sm_percent < 100;
}

static int needed;

static void prepare(void)
{
    for (int device = 0; device < slice()->count; device++)
        needed |= slice()->compute == COMPUTE_LIMITER && is_limited(device);
    if (needed)
        attach();
}

/* False for most sessions: those with whole GPUs or another way of sharing. Never called with the lock
 * held, since prepare() takes the dynamic linker's. */
static int is_needed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    return needed;
}

static struct meter *open_meter(void *context)
{
    static int next; /* with too many contexts, the oldest one's is reused */
    struct meter *meter = 0;
    int device = current_device(), cuda_device = -1;
    if (!is_limited(device))
        return 0;
    for (int index = 0; index < METERS && !meter; index++)
        meter = meters[index].context ? 0 : &meters[index];
    if (!meter) {
        meter = &meters[next++ % METERS];
        close_meter(meter);
    }
    device_of_current(&cuda_device);
    meter->context = context;
    meter->cuda_device = cuda_device;
    meter->device = device;
    return meter;
}

/* The current context's meter; null if it is not limited. */
static struct meter *find_meter(void)
{
    void *context = 0;
    if (!get_current || get_current(&context) || !context)
        return 0;
    for (int index = 0; index < METERS; index++)
        if (meters[index].context == context)
            return &meters[index];
    return open_meter(context);
}

/* A random part of `ns`. Two sessions with the same program would otherwise synchronise: all that they
 * launch would be charged double, since it would always run at the same time. What is launched early is
 * charged like the rest, only later. */
static int64_t random_part(int64_t ns)
{
    static uint64_t state;
    if (!state)
        state = (uint64_t)clock_now() | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ns / 1024 * (int64_t)(state % 1024);
}

static void poll_meter(struct meter *meter, int64_t now)
{
    if (!meter->open)
        return;
    struct use use = meter_poll(meter, now);
    charge_time(meter->device, use);
    if (use.ns)
        meter->ahead = random_part(use.ns * 100 / slice()->device[meter->device].sm_percent);
}

/* How long to sleep before the next try, in ns; 0: the launch may go. `waited` sums up sleeps that were not
 * for the share but for earlier work, which could itself be waiting for this launch, so it is bounded. */
static int64_t sleep_needed(struct meter *meter, int64_t now, int64_t *waited)
{
    if (now - meter->polled > POLL_INTERVAL || meter->open == METER_OPEN)
        poll_meter(meter, now);
    int64_t wait = share_wait(&shares[meter->device].tat, now) - meter->ahead;
    if (wait > 0)
        return wait < LONG_SLEEP ? wait : LONG_SLEEP;
    if (!meter_crowded(meter, now))
        return 0;
    if (*waited >= PATIENCE) {
        meter_give_up(meter);
        return 0;
    }
    *waited += SHORT_SLEEP;
    return SHORT_SLEEP;
}

/* The lock is released meanwhile. */
static void sleep_unlocked(int64_t ns)
{
    pthread_mutex_unlock(&lock);
    clock_sleep(ns);
    pthread_mutex_lock(&lock);
}

void launch_begin(struct launch *launch, void *stream, uintptr_t work)
{
    int64_t pause, waited = 0;
    launch->meter = 0;
    if (!is_needed() || meter_capturing(stream))
        return;
    pthread_mutex_lock(&lock);
    for (struct meter *meter; (meter = find_meter());) {
        int64_t now = clock_now();
        if (!(pause = sleep_needed(meter, now, &waited))) {
            *launch = (struct launch){.meter = meter, .stream = stream, .begun = now};
            launch->bracket = meter_begin(meter, stream, work, now);
            break;
        }
        sleep_unlocked(pause);
    }
    pthread_mutex_unlock(&lock);
}

/* For what cannot be measured by events, such as a stream of another context. */
static void measure_by_clock(const struct launch *launch)
{
    meter_wait(launch->stream);
    charge_time(launch->meter->device,
                (struct use){.ns = clock_now() - launch->begun, .since = launch->begun});
}

void launch_end(struct launch *launch, int result)
{
    int measured = launch->bracket;
    if (!launch->meter || launch->bracket == METER_SKIPPED)
        return;
    if (measured >= 0) {
        pthread_mutex_lock(&lock);
        measured = meter_end(launch->meter, launch->bracket, launch->stream, result, clock_now());
        pthread_mutex_unlock(&lock);
    }
    if (measured == METER_FAILED && !result)
        measure_by_clock(launch);
}

void limiter_poll(void)
{
    if (!is_needed())
        return;
    pthread_mutex_lock(&lock);
    struct meter *meter = find_meter();
    if (meter)
        poll_meter(meter, clock_now());
    pthread_mutex_unlock(&lock);
}

/* Other contexts of the GPU begin anew as well. */
void limiter_forget(int cuda_device)
{
    if (!is_needed())
        return;
    pthread_mutex_lock(&lock);
    for (int index = 0; index < METERS; index++) {
        struct meter *meter = &meters[index];
        int64_t waited = 0;
        while (meter->context && meter->cuda_device == cuda_device) {
            poll_meter(meter, clock_now());
            if (!meter->open || waited >= PATIENCE) {
                close_meter(meter);
                break;
            }
            sleep_unlocked(SHORT_SLEEP);
            waited += SHORT_SLEEP;
        }
    }
    pthread_mutex_unlock(&lock);
}
