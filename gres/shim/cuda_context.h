/* The ends of contexts, and synchronisation with the GPU. */
#ifndef SLIPWAY_CUDA_CONTEXT_H
#define SLIPWAY_CUDA_CONTEXT_H

#include "real.h"

extern const struct hook context_hooks[];

#endif
