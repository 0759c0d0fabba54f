/* How long kernels take: what is expected of a launch until, or instead of, a measurement. Not thread-safe:
 * limiter.c locks. */
#ifndef SLIPWAY_KINDS_H
#define SLIPWAY_KINDS_H

#include <stdint.h>

struct work {
    uintptr_t function; /* or a graph */
    uint32_t blocks;    /* of its grid */
    int overlaps;       /* may begin before the work in front of it ends (programmatic dependent launch) */
};

struct expected {
    int64_t ns; /* -1: the function was never measured */
    int sample; /* it should be measured by itself: neither was a grid of about this size */
};

struct expected kinds_expect(const struct work *work);
void kinds_learn(const struct work *work, int64_t ns);

#endif
