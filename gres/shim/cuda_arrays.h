/* Arrays and mipmapped arrays. */
#ifndef SLIPWAY_CUDA_ARRAYS_H
#define SLIPWAY_CUDA_ARRAYS_H

#include "real.h"

extern const struct hook array_hooks[];

#endif
