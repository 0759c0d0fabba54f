#include "limiter.h"

#include "clock.h"
#include "meter.h"
#include "share.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define METERS 16
#define LOOK_AGAIN INT64_C(20000)          /* ns: so often the driver is asked what has ended */
#define PATIENCE INT64_C(1000000000)       /* ns: so long a launch waits for those before it */
#define SHORT_NAP INT64_C(50000)           /* ns */
#define LONG_NAP INT64_C(10000000)         /* ns: others of the session may use its share meanwhile */

struct shared {
    share paid;
    char rest[64 - sizeof(share)]; /* of a cache line */
};
_Static_assert(sizeof(struct shared) * SLIPWAY_MAX_DEVICES <= SLIPWAY_LIMITER_SIZE, "the shares fit");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct meter meters[METERS];
static struct shared *shares; /* one for each device of the slice, shared by the session's processes */
static int (*context_current)(void **context);
static int (*context_device)(int *device);

/* A child cannot use its parent's contexts; it begins with none. */
static void begin_anew(void)
{
    pthread_mutex_init(&lock, 0);
    memset(meters, 0, sizeof meters);
}

static void charge_time(int device, struct use use)
{
    share_charge(&shares[device].paid, slice()->device[device].sm_percent, use.ns, use.since);
}

static void close_meter(struct meter *meter)
{
    int device = meter->device;
    charge_time(device, meter_close(meter, clock_now()));
}

/* The process ends. This comes before the driver's own end, which was registered earlier; what still runs
 * is charged by the clock, so that a session of many short programs pays as well. */
static void settle_at_exit(void)
{
    if (pthread_mutex_trylock(&lock))
        return; /* another thread launches to the last: not worth a hang */
    for (int index = 0; index < METERS; index++)
        if (meters[index].context)
            close_meter(&meters[index]);
    pthread_mutex_unlock(&lock);
}

/* Going on would mean going on without limits. */
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
    context_current = real_function("cuCtxGetCurrent");
    context_device = real_function("cuCtxGetDevice");
    pthread_atfork(0, 0, begin_anew);
    atexit(settle_at_exit);
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

/* Most sessions have whole GPUs or another way of sharing them: for those this is all there is. Never
 * called with the lock held, as preparing takes the dynamic linker's. */
static int is_needed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    return needed;
}

static struct meter *open_meter(void *context)
{
    static int next; /* when there are too many contexts, the oldest's begins anew */
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
    context_device(&cuda_device);
    meter->context = context;
    meter->cuda_device = cuda_device;
    meter->device = device;
    return meter;
}

/* The current context's, null where nothing is limited. */
static struct meter *find_meter(void)
{
    void *context = 0;
    if (!context_current || context_current(&context) || !context)
        return 0;
    for (int index = 0; index < METERS; index++)
        if (meters[index].context == context)
            return &meters[index];
    return open_meter(context);
}

/* A part of `ns`, by chance. Two sessions with the same program would else fall into step: all
 * they launch would be charged double, since it would always run at the same time. What comes early
 * is paid for like the rest, only later. */
static int64_t by_chance(int64_t ns)
{
    static uint64_t state;
    if (!state)
        state = (uint64_t)clock_now() | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ns / 1024 * (int64_t)(state % 1024);
}

static void look(struct meter *meter, int64_t now)
{
    if (!meter->open)
        return;
    struct use use = meter_look(meter, now);
    charge_time(meter->device, use);
    if (use.ns)
        meter->ahead = by_chance(use.ns * 100 / slice()->device[meter->device].sm_percent);
}

/* How long to nap before the next try, in ns; 0: the launch may go. `waited` counts naps that were not
 * for the share but for earlier work, which could itself be waiting for this launch: not for ever. */
static int64_t nap_needed(struct meter *meter, int64_t now, int64_t *waited)
{
    if (now - meter->looked > LOOK_AGAIN || meter->open == METER_OPEN)
        look(meter, now);
    int64_t wait = share_wait(&shares[meter->device].paid, now) - meter->ahead;
    if (wait > 0)
        return wait < LONG_NAP ? wait : LONG_NAP;
    if (!meter_crowded(meter, now))
        return 0;
    if (*waited >= PATIENCE) {
        meter_give_up(meter);
        return 0;
    }
    *waited += SHORT_NAP;
    return SHORT_NAP;
}

/* The lock is open during the nap. */
static void nap_unlocked(int64_t ns)
{
    pthread_mutex_unlock(&lock);
    clock_nap(ns);
    pthread_mutex_lock(&lock);
}

void launch_begin(struct launch *launch, void *stream, uintptr_t work)
{
    int64_t nap, waited = 0;
    launch->meter = 0;
    if (!is_needed() || meter_capturing(stream))
        return;
    pthread_mutex_lock(&lock);
    for (struct meter *meter; (meter = find_meter());) {
        int64_t now = clock_now();
        if (!(nap = nap_needed(meter, now, &waited))) {
            *launch = (struct launch){.meter = meter, .stream = stream, .begun = now};
            launch->bracket = meter_begin(meter, stream, work, now);
            break;
        }
        nap_unlocked(nap);
    }
    pthread_mutex_unlock(&lock);
}

/* What cannot be measured on the GPU, such as a stream of another context, is waited for. */
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

/* The calling thread has waited for the GPU. Without this look, what a program did last would be seen
 * at its next launch, or never. */
void limiter_look(void)
{
    if (!is_needed())
        return;
    pthread_mutex_lock(&lock);
    struct meter *meter = find_meter();
    if (meter)
        look(meter, clock_now());
    pthread_mutex_unlock(&lock);
}

/* A context of this GPU is about to end, and its events with it. Others of it begin anew as well. What
 * is on its way is waited for, as ending contexts would else be a way not to be measured. */
void limiter_forget(int cuda_device)
{
    if (!is_needed())
        return;
    pthread_mutex_lock(&lock);
    for (int index = 0; index < METERS; index++) {
        struct meter *meter = &meters[index];
        int64_t waited = 0;
        while (meter->context && meter->cuda_device == cuda_device) {
            look(meter, clock_now());
            if (!meter->open || waited >= PATIENCE) {
                close_meter(meter);
                break;
            }
            nap_unlocked(SHORT_NAP);
            waited += SHORT_NAP;
        }
    }
    pthread_mutex_unlock(&lock);
}
