/* Stream-ordered allocations from pools. */
#ifndef SLIPWAY_CUDA_ASYNC_H
#define SLIPWAY_CUDA_ASYNC_H

#include "real.h"

extern const struct hook async_hooks[];

#endif
