/* Keeps a session at its share of the GPU's time (share.h): every launch goes through here.
 *
 * What a launch took is measured by the GPU itself, between two events around it. Kernels that were
 * short the last time are measured now and then only, for those in between as well. Many may be on
 * their way, but not for long: else a program could queue minutes of work before the first of it has
 * been measured.
 *
 * Events are timestamps. While a neighbour's kernels take turns with ours, ours take longer, and that
 * is charged too: the share is a ceiling, not a reservation.
 */
#ifndef SLIPWAY_LIMITER_H
#define SLIPWAY_LIMITER_H

#include "shim.h" /* limiter_look and limiter_forget are there */

#include <stdint.h>

#define STREAM_LEGACY ((void *)1)     /* what a null stream means to most programs */
#define STREAM_PER_THREAD ((void *)2) /* and to those with a default stream for each thread */

struct launch {
    struct meter *meter; /* null: not limited, or captured into a graph and so not run */
    void *stream;
    int bracket;         /* the measurement's number, or one of those in limiter.c */
    int64_t begun;
};

/* Before a launch of `work` (a function or a graph): waits until the session may. */
void launch_begin(struct launch *launch, void *stream, uintptr_t work);
/* After it, with what the driver answered. */
void launch_end(struct launch *launch, int result);

#endif
