/* The limiter's only look at time, so that tests can have one of their own. */
#ifndef SLIPWAY_CLOCK_H
#define SLIPWAY_CLOCK_H

#include <stdint.h>

int64_t clock_now(void); /* ns of CLOCK_MONOTONIC: the same for all processes of a node */
void clock_nap(int64_t ns);

#endif
