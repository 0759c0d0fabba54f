/* Plain and managed device memory, and freeing of every kind. */
#ifndef SLIPWAY_CUDA_MEMORY_H
#define SLIPWAY_CUDA_MEMORY_H

#include "cuda_allocations.h"
#include "cuda_wrap.h"

/* Frees by the driver's function, and releases what was charged. */
typedef CUresult free_function(void *arguments);
CUresult allocation_free(enum allocation_kind kind, uint64_t key, free_function *real, void *arguments);

extern const struct hook memory_hooks[];

#endif
