/* Keeps a session at its share of the GPU's time (share.h): every launch goes through here.
 *
 * Work is measured by the GPU itself, in stretches of about a millisecond between two events (meter.h). The
 * amount of work in flight is bounded: otherwise a program could queue minutes of work before the first of it
 * has been measured.
 *
 * Events are timestamps: while a neighbour's kernels take turns with ours, ours take longer. Root's watchdog
 * tells which part of that is to be charged, and what the share is at present (load.h).
 */
#ifndef SLIPWAY_LIMITER_H
#define SLIPWAY_LIMITER_H

#include "kinds.h"

#include <stdint.h>

#define STREAM_LEGACY ((void *)1)     /* what a null stream means to most programs */
#define STREAM_PER_THREAD ((void *)2) /* and to those with a default stream for each thread */

struct launch {
    struct meter *meter; /* null: not limited, or captured into a graph and so not run */
    unsigned life;       /* of the meter: its context may end meanwhile */
    void *handle;        /* the stream */
    int stream, idle, after;
    int64_t expected, begun;
};

/* Before a launch: waits until the session may. */
void launch_begin(struct launch *launch, void *stream, const struct work *work);
/* After it, with the driver's result. */
void launch_end(struct launch *launch, int result);

/* Around a wait for the GPU, after which all work of the stream (NULL: of all streams of the current context)
 * has ended: charges it. Otherwise a program's last work would be charged at its next launch, or never. The first one
 * gives the time at which the wait begins, which the second one takes. */
int64_t limiter_before_wait(void *stream);
void limiter_after_wait(void *stream, int64_t began);
/* After any other wait: charges what has ended. */
void limiter_poll(void);
/* Before a stream is destroyed. */
void limiter_end_stream(void *stream);
/* Before a context of this GPU ends, and its events with it. Work in flight is waited for, since ending contexts
 * would otherwise be a way not to be measured. */
void limiter_forget(int cuda_device);

#endif
