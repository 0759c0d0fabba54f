/* Physical memory without an address, its mappings, and the tiles of sparse arrays. */
#ifndef SLIPWAY_CUDA_VMM_H
#define SLIPWAY_CUDA_VMM_H

#include "cuda_wrap.h"

void tiles_end(void *array); /* the array was destroyed */
void tiles_forget(void);     /* in a child, which has none */

extern const struct hook vmm_hooks[];

#endif
