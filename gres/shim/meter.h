/* Decides which launches of one context are measured, and keeps account of those in flight. Not thread-safe:
 * limiter.c locks, and makes the calls to the driver that are decided here.
 *
 * A stretch of work begins with a mark when a stream turns from idle to busy and has another one after each
 * millisecond of launching, or of expected work. Within a millisecond of another mark the first one is no event, but
 * the clock's time. Launches behind the last mark (the tail) of a stream that is
 * found idle are charged as expected (kinds.h), never by the clock, since the program may have computed for
 * seconds meanwhile. */
#ifndef SLIPWAY_METER_H
#define SLIPWAY_METER_H

#include "stretches.h"

#include <pthread.h>
#include <stdint.h>

/* Two events in each millisecond take the driver about 5 us: half a percent. Shorter stretches cost more,
 * longer ones are noticed later. */
#define METER_STRETCH INT64_C(1000000)
/* Launches of unknown duration in a tail that are worth a mark: those that must not have one in front of them. */
#define METER_UNKNOWN_TAIL 8
/* A tail of so much expected work is worth an event (2.5 us, 1 %) before the program waits for it. */
#define METER_TAIL INT64_C(250000)
/* A stream that was launched into so recently is taken to be busy without a query (about 0.5 us, 2 %). */
#define METER_GAP INT64_C(20000)
/* In a call to the driver of more than this, it loaded the kernel's code, which does not keep the GPU busy, or waited
 * for room in its queue. Common ones take 2 to 10 us. */
#define METER_LONG_CALL INT64_C(100000)
/* The fewest launches per random sample, on average: each sample has two events (5 us). */
#define METER_STRIDE 8
/* The same after one that may have taken longer than expected. Those are a millisecond apart at least. */
#define METER_SOON 4
/* Streams of a context that are kept apart. Of more than these, the one that was idle for longest is replaced;
 * frameworks use up to 32 + the default ones. */
#define METER_STREAMS 64

struct stream {
    void *handle;     /* NULL: unused */
    pthread_t owner;   /* of a thread's own default stream; else 0 */
    struct mark *mark; /* the latest one in the stream, with one use; NULL: not measured at present */
    struct tally tail; /* launched since */
    int64_t marked;   /* when the last mark was recorded */
    int64_t used;     /* when it was launched into */
    int64_t looked;   /* when it was queried */
    int64_t advanced; /* when a stretch of it was found to have ended */
    int mute;         /* no event can be recorded in it */
    int recording;    /* a thread records a mark in it without the lock */
};

struct meter {
    void *context;     /* NULL: unused */
    unsigned life;     /* differs between the contexts that the meter was used for */
    int users;         /* threads that use it without the lock */
    int cuda_device;
    int device;        /* index in slice() */
    int looking;       /* a thread is between stretches_choose() and stretches_settle() */
    int64_t polled;
    int64_t marked;
    int64_t owed;      /* ns of tails without a mark in front of them, still to be charged */
    int64_t ahead;     /* ns by which the next launch may precede the share's arrival time (limiter.c) */
    int64_t woke;      /* when a launch ended its wait for the share */
    int64_t sampled;   /* when a launch was chosen at random, */
    uint32_t since;    /* launches since, */
    uint32_t until;    /* and after how many it is the next one's turn */
    uint32_t stride;   /* their mean */
    int streams;       /* those below this number may be in use */
    struct stretches stretches;
    struct stream stream[METER_STREAMS];
};

struct plan {
    int stream;
    int idle;            /* the stream has nothing else to do */
    struct mark *before; /* to be recorded first; `stretch` is what it ends, or -1 */
    int stretch;
    int after;           /* a mark is to be recorded after the launch */
    int64_t expected;    /* -1: not known */
};

/* The stream's number; a new one has the oldest's. *lost: work of the replaced one, to be charged. */
int meter_stream(struct meter *meter, void *handle, int64_t now, int64_t *lost);
/* -1 if it was not used yet. */
int meter_find_stream(const struct meter *meter, void *handle);

/* Whether to ask the driver for the stream's state before the next launch. Also before a launch that is measured by
 * itself: in an idle stream the start of a kernel is known exactly. */
int meter_must_ask(const struct meter *meter, int stream, const struct work *work, int64_t now);
/* The answer; the ns of the tail that are to be charged. */
int64_t meter_answer(struct meter *meter, int stream, enum events_state state, int64_t now);

/* The program waited for all work of the stream from `began` to `now`, so that this work kept the GPU busy: a tail
 * without a mark took at least that. Only for waits of a stretch or more, beside which the time that a thread takes to
 * wake up is little. */
void meter_waited(struct meter *meter, int stream, int64_t began, int64_t now);

/* The next launch. It is part of the tail from now on. */
struct plan meter_plan(struct meter *meter, int stream, const struct work *work, int64_t now);
/* It was refused, and so did not run. */
void meter_refuse(struct meter *meter, const struct plan *plan);
/* The driver took from `begun` to `now` for a launch: told for those into an idle stream, those with a mark behind
 * them, and those that took long (METER_LONG_CALL). `expected` ns of work are on their way in the stream. */
void meter_took(struct meter *meter, const struct plan *plan, int64_t begun, int64_t now, int64_t expected);

/* Whether the stream's tail is worth a mark before the program waits for it. */
int meter_is_tail_worth(const struct meter *meter, int stream, int64_t now);
/* Ends the stream's tail by a new mark, which the caller records. NULL: no room. */
struct mark *meter_mark(struct meter *meter, int stream, int *stretch, int64_t now);
/* It was recorded, or could not be. */
void meter_marked(struct meter *meter, int stream, struct mark *mark, int stretch, int failed);

/* It is about to be destroyed. */
void meter_end_stream(struct meter *meter, int stream, int64_t now);

/* Ends all measurements; the GPU time of those under way, by the clock. */
struct use meter_close(struct meter *meter, int64_t now);

#endif
