/* How much work of a context is on its way, and whether that is too much: otherwise a program could queue minutes
 * of it before the first has been measured. Not thread-safe: limiter.c locks. */
#ifndef SLIPWAY_FLIGHT_H
#define SLIPWAY_FLIGHT_H

#include "meter.h"

/* The most GPU time on its way in a stream, and the longest wait for the oldest of it: half of what a share may
 * be exceeded by at once (SHARE_TOLERANCE). */
#define FLIGHT_WINDOW INT64_C(50000000)
/* The oldest work of a stream may take twice of what is expected, and so much longer (a time slice of a neighbour),
 * before it counts as a wrong estimate: there may be much more of it in the queue. */
#define FLIGHT_LATE INT64_C(2000000)
/* That is no reason to wait if less than this is on its way: what keeps the GPU busy while the program's thread wakes
 * up and launches again. */
#define FLIGHT_ENOUGH INT64_C(10000000)
/* FLIGHT_WINDOW for all streams: they run side by side, so that this is about one window of time. */
#define FLIGHT_WINDOWS (4 * FLIGHT_WINDOW)
/* Launches on their way whose duration is not known. Most of those are short: 32 of 1 ms are less than a window,
 * and a queue of 32 keeps the GPU busy while a program goes on launching. */
#define FLIGHT_UNKNOWN 32
/* Of these, measurements of one function: the first tells how long the others take. */
#define FLIGHT_SAME 1
/* How long a launch waits for earlier work, which may itself be waiting for what the program does next: a second,
 * and as long as work of known duration should take while a neighbour has half of the GPU. */
#define FLIGHT_PATIENCE INT64_C(1000000000)
#define FLIGHT_MOST_PATIENCE INT64_C(10000000000)

/* Whether so much work is in flight that the next launch into this stream should wait. */
int flight_is_crowded(const struct meter *meter, int stream, const struct work *work, int64_t now);
int64_t flight_patience(const struct meter *meter, int stream); /* how long it waits for that, in ns */
/* What was looked at has been settled. */
void flight_advance(struct meter *meter, const struct look *look, int64_t now);
/* No longer wait for the stream's work in flight, which may itself be waiting for the next launch. */
void flight_give_up(struct meter *meter, int stream, int64_t now);
/* The ns of known work on its way in a stream. */
int64_t flight_expected(const struct meter *meter, int stream);

#endif
