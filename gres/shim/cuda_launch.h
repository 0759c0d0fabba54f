/* All ways to launch work on a GPU. */
#ifndef SLIPWAY_CUDA_LAUNCH_H
#define SLIPWAY_CUDA_LAUNCH_H

#include "real.h"

extern const struct hook launch_hooks[];

#endif
