/* The driver's timed events, as the limiter needs them. None of these functions is called with the limiter's
 * lock held: recording blocks while the driver's queue is full, and the others may wait for a lock of the
 * driver's that a blocked launch holds. */
#ifndef SLIPWAY_EVENTS_H
#define SLIPWAY_EVENTS_H

#include <stdint.h>

enum events_state { EVENTS_DONE, EVENTS_PENDING, EVENTS_FAILED };

/* Whether the stream is being captured into a graph. Also true if that is unknown, since the launch will
 * fail then. */
int events_capturing(void *stream);

/* In the current context; NULL if that is impossible. */
void *events_create(void);
void events_destroy(void *event);
/* 0, or the driver's error: the stream belongs to another context than the event, for example. */
int events_record(void *event, void *stream);

enum events_state events_state(void *event);
enum events_state events_stream_state(void *stream); /* EVENTS_DONE: all that it was given has ended */
/* The ns from one event to another; both must have ended. Negative if the second one was earlier. */
int64_t events_between(void *start, void *end);

#endif
