/* Memory pools, for stream-ordered allocations. */
#ifndef SLIPWAY_CUDA_POOLS_H
#define SLIPWAY_CUDA_POOLS_H

#include "cuda_allocations.h"
#include "cuda_wrap.h"

/* Sets the charges of this process's pools to what the driver reports as reserved. */
void pools_sync(void);
/* Frees what they have reserved and do not use. */
void pools_trim(void);
void pools_forget(void); /* in a child, which has none */
/* The driver has freed an allocation whose owner is a pool. */
void pool_freed(const struct allocation *entry);

/* --- one pool; all of this with the guard entered --- */

struct pool {
    struct pool *next;
    CUmemoryPool handle; /* NULL once destroyed: what is still allocated from it stays until freed */
    int device;          /* DEVICE_NONE: the host's, or another process's, and never charged */
    uint64_t charged;
    uint64_t coming;    /* bytes of calls on their way, which the driver may or may not count already */
    unsigned int calls; /* on their way in the driver, without the guard */
    unsigned int live;  /* allocations from it */
};

struct pool *pool_get(CUmemoryPool handle); /* NULL without memory for it */
uint64_t pool_attribute(const struct pool *pool, int attribute);
/* Charges what the driver has reserved more than was charged, or releases what it has given back. */
void pool_sync(struct pool *pool);
/* Around a call of the driver that may wait and so is made without the guard: the pool stays valid in
 * between, also when it is destroyed. The caller adds what the call may take to `coming`. */
void pool_call_begins(struct pool *pool);
void pool_call_ends(struct pool *pool);
void pool_trim(struct pool *pool);

extern const struct hook pool_hooks[];

#endif
