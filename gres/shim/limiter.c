#include "limiter.h"

#include "clock.h"
#include "events.h"
#include "flight.h"
#include "meters.h"
#include "trace.h"

#include <stdio.h>
#include <unistd.h>

/* ns between queries to the driver of what has ended: they take it less than 1 us (1 %), and what is charged so
 * much later is a thousandth of the tolerance. */
#define POLL_INTERVAL INT64_C(100000)
#define SHORT_SLEEP INT64_C(50000)       /* ns: as long as the kernel takes to wake up a thread */
#define SLEEPS 16 /* sleeps of growing length, each so small a part of the wait, cost little time of the CPU */
#define LONG_SLEEP INT64_C(10000000)     /* ns: others of the session may use its share meanwhile */
#define SILENCE INT64_C(3000000000)      /* ns of waiting after which a line says why */
#define BETWEEN_LINES INT64_C(60000000000) /* ns */
#define BETWEEN_SIGNALS INT64_C(1000000000) /* ns */

/* --- waiting --- */

struct waiting {
    int64_t began;   /* 0: not at all */
    int64_t crowded; /* ns of it for earlier work, which may itself be waiting for this launch */
    int announced, interrupted;
};

enum { AGAIN = -1 }; /* the context ended meanwhile */

/* How long to sleep before the next try, in ns; 0: the launch may go. */
static int64_t limiter_pause(struct meter *meter, int stream, const struct work *work, int64_t now,
                             struct waiting *waiting)
{
    if (meter_must_ask(meter, stream, work, now) && !meters_ask(meter, stream, now))
        return AGAIN;
    if (now - meter->polled > POLL_INTERVAL && !meters_look(meter, now))
        return AGAIN;
    int64_t wait = meters_wait(meter, now) - meter->ahead;
    if (wait > 0)
        return wait < LONG_SLEEP ? wait : LONG_SLEEP;
    if (!flight_is_crowded(meter, stream, work, now))
        return 0;
    if (meter->polled != now && !meters_look(meter, now))
        return AGAIN;
    if (meter->stream[stream].tail.launches && !meters_ask(meter, stream, now))
        return AGAIN;
    if (!flight_is_crowded(meter, stream, work, now))
        return 0;
    if (waiting->crowded >= flight_patience(meter, stream)) {
        flight_give_up(meter, stream, now);
        return 0;
    }
    int64_t pause = waiting->crowded / SLEEPS;
    pause = pause < SHORT_SLEEP ? SHORT_SLEEP : pause > LONG_SLEEP ? LONG_SLEEP : pause;
    waiting->crowded += pause;
    return pause;
}

/* The session's user sees a program that does nothing: why, and for how long. */
static void limiter_announce(const struct meter *meter, struct waiting *waiting, int64_t now)
{
    static int64_t last;
    char line[200];
    if (waiting->announced || !waiting->began || now - waiting->began < SILENCE || (last && now - last < BETWEEN_LINES))
        return;
    int64_t more = meters_wait(meter, now);
    int length = snprintf(line, sizeof line,
                          "slipway: this session waits for its share of the GPU (%d %%), after work that took "
                          "more of it: %lld s until now, at most %lld s more.\n",
                          meters_percent(meter),
                          (long long)((now - waiting->began) / 1000000000),
                          (long long)((more + 999999999) / 1000000000));
    ssize_t ignored = write(2, line, (size_t)length);
    (void)ignored;
    waiting->announced = 1;
    last = now;
}

/* The lock is released meanwhile.
 *
 * A signal's handler has run when the sleep was interrupted, but an interpreter's handler (Python's) only notes
 * the signal and runs the user's code once the program is back from the driver. So the launch goes at once, and is
 * charged; at most once a second, since a profiler's timer would otherwise end all waiting. */
static void limiter_sleep(int64_t ns, int64_t now, struct waiting *waiting)
{
    static int64_t passed;
    if (!waiting->began) {
        waiting->began = now;
        trace_add(TRACE_WAITS, 1);
    }
    pthread_mutex_unlock(&meters_lock);
    int signal = clock_sleep(ns);
    trace_add(TRACE_SLEPT_NS, (uint64_t)ns);
    pthread_mutex_lock(&meters_lock);
    if (signal && clock_now() - passed >= BETWEEN_SIGNALS) {
        passed = clock_now();
        waiting->interrupted = 1;
    }
}

/* --- launches --- */

/* Decides what is measured and lets the launch go. */
static void limiter_admit(struct launch *launch, struct meter *meter, int stream, const struct work *work,
                          int64_t now)
{
    const unsigned life = meter->life;
    struct plan plan = meter_plan(meter, stream, work, now);
    if (plan.before && !meters_record(meter, stream, plan.before, plan.stretch))
        return;
    launch->meter = meter;
    launch->life = life;
    launch->stream = stream;
    launch->idle = plan.idle;
    launch->after = plan.after && !meter->stream[stream].mute;
    launch->expected = plan.expected;
    launch->begun = clock_now();
}

void launch_begin(struct launch *launch, void *handle, const struct work *work)
{
    struct waiting waiting = {0};
    struct meter *meter;
    launch->meter = NULL;
    if (!meters_is_needed() || events_capturing(handle))
        return;
    trace_add(TRACE_LAUNCHES, 1);
    while ((meter = meters_enter(1))) {
        int64_t now = clock_now(), lost;
        const int stream = meter_stream(meter, handle, now, &lost);
        meters_charge(meter, (struct use){lost, now}, now);
        int64_t pause = waiting.interrupted ? 0 : limiter_pause(meter, stream, work, now, &waiting);
        if (!pause) {
            limiter_admit(launch, meter, stream, work, now);
            break;
        }
        if (pause != AGAIN) {
            limiter_announce(meter, &waiting, now);
            const unsigned life = meter->life;
            limiter_sleep(pause, now, &waiting);
            if (meter->life == life)
                meter->woke = clock_now();
        }
        pthread_mutex_unlock(&meters_lock);
    }
    pthread_mutex_unlock(&meters_lock);
}

static void limiter_mark(struct meter *meter, int stream, int64_t now)
{
    int stretch;
    struct mark *mark = meter_mark(meter, stream, &stretch, now);
    if (mark)
        meters_record(meter, stream, mark, stretch);
}

void launch_end(struct launch *launch, int result)
{
    struct meter *meter = launch->meter;
    if (!meter)
        return;
    const int64_t now = clock_now();
    const int is_told = launch->idle || launch->after || now - launch->begun > METER_LONG_CALL;
    if (!result && !is_told)
        return;
    const struct plan plan = {.stream = launch->stream, .idle = launch->idle, .expected = launch->expected};
    pthread_mutex_lock(&meters_lock);
    if (meter->life == launch->life) {
        if (result)
            meter_refuse(meter, &plan);
        else if (is_told)
            meter_took(meter, &plan, launch->begun, now, flight_expected(meter, launch->stream));
        if (!result && launch->after && !meter->stream[launch->stream].recording)
            limiter_mark(meter, launch->stream, now);
    }
    pthread_mutex_unlock(&meters_lock);
}

/* --- the program's own waiting --- */

/* Whether the calling thread may record a mark in it: another thread's default stream has no name here. */
static int limiter_is_own(const struct meter *meter, int stream)
{
    const void *handle = meter->stream[stream].handle;
    return handle && (handle != STREAM_PER_THREAD || meter_find_stream(meter, STREAM_PER_THREAD) == stream);
}

int64_t limiter_before_wait(void *handle)
{
    if (!meters_is_needed())
        return 0;
    const int64_t now = clock_now();
    struct meter *meter = meters_enter(0);
    const unsigned life = meter ? meter->life : 0;
    const int only = meter && handle ? meter_find_stream(meter, handle) : -1;
    for (int stream = 0; meter && meter->life == life && stream < meter->streams; stream++)
        if ((handle ? stream == only : limiter_is_own(meter, stream)) && meter_is_tail_worth(meter, stream, now))
            limiter_mark(meter, stream, now);
    pthread_mutex_unlock(&meters_lock);
    return clock_now();
}

/* The stream that a wait for all of them was for: the only one with a tail, or -1. */
static int limiter_only_tail(const struct meter *meter)
{
    int only = -1;
    for (int stream = 0; stream < meter->streams; stream++)
        if (meter->stream[stream].tail.launches) {
            if (only >= 0)
                return -1;
            only = stream;
        }
    return only;
}

void limiter_after_wait(void *handle, int64_t began)
{
    if (!meters_is_needed())
        return;
    const int64_t now = clock_now();
    struct meter *meter = meters_enter(0);
    const int only = meter && handle ? meter_find_stream(meter, handle) : -1;
    if (meter && !meters_look(meter, now)) /* first what was in front of the tails */
        meter = NULL;
    const int waited = !meter || handle ? only : limiter_only_tail(meter);
    if (meter && waited >= 0)
        meter_waited(meter, waited, began, now);
    for (int stream = 0; meter && stream < meter->streams; stream++)
        if (meter->stream[stream].handle && (!handle || stream == only))
            meters_charge(meter, (struct use){meter_answer(meter, stream, EVENTS_DONE, now), now}, now);
    pthread_mutex_unlock(&meters_lock);
}

void limiter_poll(void)
{
    if (!meters_is_needed())
        return;
    struct meter *meter = meters_enter(0);
    if (meter)
        meters_look(meter, clock_now());
    pthread_mutex_unlock(&meters_lock);
}

void limiter_end_stream(void *handle)
{
    if (!meters_is_needed())
        return;
    limiter_before_wait(handle);
    struct meter *meter = meters_enter(0);
    const int stream = meter ? meter_find_stream(meter, handle) : -1;
    if (stream >= 0)
        meter_end_stream(meter, stream, clock_now());
    pthread_mutex_unlock(&meters_lock);
}

void limiter_forget(int cuda_device)
{
    meters_forget(cuda_device);
}
