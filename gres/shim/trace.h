/* What the shim did, printed when a program ends, if SLIPWAY_GPU_TRACE is set in its environment:
 *
 *     SLIPWAY_GPU_TRACE=1    one line with counts, and one for each function that was refused or unknown
 *     SLIPWAY_GPU_TRACE=2    also a line for each refusal as it happens
 *
 * Off, each call costs one predictable branch. On, it is lock-free and allocates nothing. A process counts
 * for itself; a forked child begins at 0. */
#ifndef SLIPWAY_TRACE_H
#define SLIPWAY_TRACE_H

#include <stdint.h>

enum trace_event {
    TRACE_LAUNCHES,      /* launches that went through the limiter */
    TRACE_STRETCHES,     /* measurements by events that were begun */
    TRACE_UNMEASURABLE,  /* launches for which that failed */
    TRACE_WAITS,         /* launches that had to wait */
    TRACE_SLEPT_NS,      /* and for how long in total */
    TRACE_CHARGES,       /* reservations and charges of memory */
    TRACE_CHARGED_BYTES,
    TRACE_RELEASED_BYTES,
    TRACE_EVENTS         /* their number */
};

__attribute__((visibility("hidden"))) extern int trace_level;

/* The slow halves of the functions below. */
void trace_count(enum trace_event event, uint64_t amount);
void trace_count_refused(const char *function, uint64_t bytes);
void trace_count_unknown(const char *name);

static inline void trace_add(enum trace_event event, uint64_t amount)
{
    if (__builtin_expect(trace_level, 0))
        trace_count(event, amount);
}

/* The function was refused by the slice; 0 bytes where none were requested. */
static inline void trace_refused(const char *function, uint64_t bytes)
{
    if (__builtin_expect(trace_level, 0))
        trace_count_refused(function, bytes);
}

/* A function was looked up that the shim should wrap and does not know. */
static inline void trace_unknown(const char *name)
{
    if (__builtin_expect(trace_level, 0))
        trace_count_unknown(name);
}

/* Set by a library that knows them: the memory of the calling thread's slice, for lines of level 2. */
__attribute__((visibility("hidden"))) extern void (*trace_usage)(uint64_t *used, uint64_t *total);

#endif
