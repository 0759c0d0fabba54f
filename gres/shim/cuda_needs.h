/* How much memory a graph allocates. */
#ifndef SLIPWAY_CUDA_NEEDS_H
#define SLIPWAY_CUDA_NEEDS_H

#include "cuda_shim.h"

/* What one executable graph needs of one GPU. */
struct need {
    struct need *next;
    CUdevice ordinal;
    uint64_t bytes;
};

/* CUDA_ERROR_OUT_OF_MEMORY when there is no memory to look into it, else a list, NULL for nothing. */
CUresult needs_of(CUgraph graph, struct need **needs);
void needs_free(struct need *need);

#endif
