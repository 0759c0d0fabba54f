/* The work of one context that is measured: a stretch is what was launched into a stream between two timed
 * events (marks). The mark at its end is the one at which the next begins, so that a busy stream has one event
 * for each stretch, whatever the number of its launches. Not thread-safe: limiter.c locks. */
#ifndef SLIPWAY_STRETCHES_H
#define SLIPWAY_STRETCHES_H

#include "busy.h"
#include "events.h"
#include "kinds.h"

#include <stdint.h>

/* A stretch has about 1 ms of work or more (METER_STRETCH), and no stream has more than 50 ms on its way
 * (METER_WINDOW): with 64 of them one stream never runs out. */
#define STRETCHES 64

struct mark {
    void *event;  /* NULL: not created yet, which is done without the lock */
    int64_t at;   /* when it was passed, once `known`: ns by the GPU's clock, counted from the clock's time of a
                   * mark in an idle stream, so that both agree within some 10 us */
    int known;
    int64_t recorded; /* the clock's time then, */
    int idle;         /* in a stream that had nothing else to do */
    int by_clock;     /* no event: `at` is the clock's time of the first launch into an idle stream */
    int users;    /* stretches, streams and the base */
    struct mark *next; /* of the spare ones */
};

/* What was launched since a mark. */
struct tally {
    uint32_t launches, unknown; /* and how many of these have an unknown duration */
    int64_t expected;           /* ns of the others */
    int64_t first;              /* when the first one was launched */
    int64_t call;               /* ns that the driver took for the first one; 0: not known */
    int64_t enqueued;           /* the clock's time before which the first one did not begin; 0: not known */
    int64_t idle;               /* ns in which the GPU had nothing to do, since later ones took the driver long */
    int64_t paid;               /* ns that were charged already, since it was seen to be busy so long */
    int gap;                    /* between two of them the program did something else (METER_GAP) */
    struct work learn;          /* the only one, or the only unknown one */
    int teaches;                /* the duration of `learn` is to be learned */
};

struct stretch {
    enum { STRETCH_FREE, STRETCH_RECORDING, STRETCH_RECORDED } state;
    struct mark *start, *end;
    struct tally tally;
    int stream;   /* its number in the meter */
    int given_up; /* no longer waited for */
};

struct stretches {
    int open;
    unsigned char order[STRETCHES]; /* numbers of those in use, oldest first */
    struct stretch stretch[STRETCHES];
    struct mark *base; /* a recent mark, from which others are measured: elapsed times are floats */
    struct mark *spare;
    struct busy busy;
};

/* The GPU time of what has ended. */
struct use {
    int64_t ns;
    int64_t since; /* it was launched at this time or later */
};

struct mark *stretches_mark(struct stretches *all); /* one use of it; NULL without memory */
struct mark *stretches_mark_by_clock(struct stretches *all, int64_t now); /* the same, where no event is recorded */
void stretches_drop(struct stretches *all, struct mark *mark);

/* Takes over one use of `start` and adds one of `end`: a number, or -1 if there are too many. */
int stretches_begin(struct stretches *all, int stream, struct mark *start, struct mark *end,
                    const struct tally *tally);
void stretches_recorded(struct stretches *all, int number);
void stretches_cancel(struct stretches *all, int number);

/* Looking which have ended, in three steps, of which the second is done without the lock. */
struct look {
    int count;
    void *base;
    struct {
        int number, stream;
        void *start, *end; /* no start: it is known by the clock */
        int start_known;
        enum events_state state;
        int64_t start_at, end_at; /* relative to base */
    } at[STRETCHES];
};
void stretches_choose(struct stretches *all, struct look *look, int64_t now);
void stretches_ask(struct look *look);
struct use stretches_settle(struct stretches *all, const struct look *look, int64_t now);
/* Work of `ns` that has ended, and was launched between these two times of the clock, or later: ns that are new. */
int64_t stretches_estimated(struct stretches *all, int64_t from, int64_t to, int64_t ns, int64_t now);

/* Ends all of them. Their marks are left alone if somebody still uses them. */
void stretches_close(struct stretches *all, int in_use);

#endif
