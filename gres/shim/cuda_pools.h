/* One pool of memory. All of this with the guard entered. */
#ifndef SLIPWAY_CUDA_POOLS_H
#define SLIPWAY_CUDA_POOLS_H

#include "cuda_shim.h"

struct pool {
    struct pool *next;
    CUmemoryPool handle; /* NULL once destroyed: what is still allocated from it stays until freed */
    int device;          /* DEVICE_NONE: the host's, or another process's, and never charged */
    uint64_t charged;
    unsigned int live; /* allocations from it */
};

struct pool *pool_get(CUmemoryPool handle); /* NULL without memory for it */
uint64_t pool_figure(const struct pool *pool, int attribute);
void pool_settle(struct pool *pool);
void pool_trim(struct pool *pool);

#endif
