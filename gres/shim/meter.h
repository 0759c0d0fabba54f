/* Measures launches in one context of the driver. Not thread-safe: limiter.c locks. */
#ifndef SLIPWAY_METER_H
#define SLIPWAY_METER_H

#include <stdint.h>

#define METER_OPEN 64                   /* most measurements in flight */
#define METER_UNKNOWN 8                 /* most of these for work that was never measured */
#define METER_WINDOW INT64_C(50000000)  /* ns: most GPU time in flight, and for how long */
#define METER_SHORT INT64_C(50000)      /* ns: shorter kernels are sampled */
#define METER_STRIDE 16                 /* launches of a kind per sample, on average */

enum { METER_SKIPPED = -1, METER_FAILED = -2 }; /* instead of a measurement's number */

struct bracket {
    enum { BRACKET_FREE, BRACKET_BEGUN, BRACKET_ENDED } state;
    int given_up;    /* no longer waited for */
    void *start;     /* events; created when first needed, then reused */
    void *end;
    int64_t begun;
    int64_t call;     /* ns that the driver's function took */
    int64_t expected; /* ns, as it took the last time; -1: not known */
    uintptr_t work;
    uint32_t weight;  /* launches of this kind that it stands for */
};

struct meter {
    void *context;  /* null: unused */
    int cuda_device;
    int device;     /* index in slice() */
    void *last;     /* the event at the latest end that was measured */
    void *stream;   /* of the launch before */
    int64_t polled;
    int64_t ahead;  /* ns by which the next launch may precede the share's arrival time (limiter.c) */
    int open;
    unsigned char order[METER_OPEN]; /* numbers of open brackets, oldest first */
    struct bracket bracket[METER_OPEN];
};

/* Whether the stream is being captured into a graph. Also true if that is unknown, since the launch will
 * fail then. */
int meter_capturing(void *stream);

/* Begins to measure what is launched next: the measurement's number, or why there is none. */
int meter_begin(struct meter *meter, void *stream, uintptr_t work, int64_t now);
/* Ends it; METER_FAILED if that is impossible. A launch that was refused is not measured. */
int meter_end(struct meter *meter, int number, void *stream, int refused, int64_t now);

/* The GPU time of what has ended since the last poll. */
struct use {
    int64_t ns;
    int64_t since; /* it was launched at this time or later */
};
struct use meter_poll(struct meter *meter, int64_t now);
/* Whether so much work is in flight that the next launch should wait. */
int meter_crowded(const struct meter *meter, int64_t now);
/* No longer wait for work in flight, which may itself be waiting for the next launch. */
void meter_give_up(struct meter *meter);

/* Waits for a stream that cannot be measured. */
void meter_wait(void *stream);

/* Ends all measurements; the GPU time of those under way, by the clock. */
struct use meter_close(struct meter *meter, int64_t now);

#endif
