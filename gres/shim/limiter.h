/* Keeps a session at its share of the GPU's time (share.h): every launch goes through here.
 *
 * The duration of a launch is measured by the GPU itself, between two events around it. Kernels that were
 * short the last time are only sampled, and a sample stands for those in between. The amount of work in
 * flight is bounded: otherwise a program could queue minutes of work before the first of it has been
 * measured.
 *
 * Events are timestamps. While a neighbour's kernels take turns with ours, ours take longer, and that
 * is charged, too: the share is a ceiling, not a reservation.
 */
#ifndef SLIPWAY_LIMITER_H
#define SLIPWAY_LIMITER_H

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
/* After it, with the driver's result. */
void launch_end(struct launch *launch, int result);

/* Called when the calling thread has waited for the GPU: charges what has ended. Otherwise a program's last
 * work would be charged at its next launch, or never. */
void limiter_poll(void);
/* Called before a context of this GPU ends, and its events with it. Work in flight is waited for, since
 * ending contexts would otherwise be a way not to be measured. */
void limiter_forget(int cuda_device);

#endif
