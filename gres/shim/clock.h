/* The limiter's only source of time, so that tests can replace it. */
#ifndef SLIPWAY_CLOCK_H
#define SLIPWAY_CLOCK_H

#include <stdint.h>

int64_t clock_now(void); /* ns of CLOCK_MONOTONIC: the same for all processes of a node */
/* Whether a signal's handler ran meanwhile; the sleep ended then. */
int clock_sleep(int64_t ns);

#endif
