/* What the wrappers of libcuda share. */
#ifndef SLIPWAY_CUDA_SHIM_H
#define SLIPWAY_CUDA_SHIM_H

#include "cuda_abi.h"
#include "shim.h"

/* WRAP(name, parameters) { body } defines the exported function `name` and `real_name`, the driver's;
 * HOOK(name) is its line in the table of its file. */
#define EXPORT __attribute__((visibility("default")))
#define WRAP(name, ...)                                                                             \
    static CUresult (*real_##name)(__VA_ARGS__);                                                    \
    EXPORT CUresult name(__VA_ARGS__);                                                              \
    EXPORT CUresult name(__VA_ARGS__)
/* A function of the driver that is called, but not wrapped. */
#define NEEDS(name, ...) static CUresult (*real_##name)(__VA_ARGS__)
#define HOOK(name) {#name, (void *)(name), (void **)&real_##name}
#define NEEDED(name) {#name, NULL, (void **)&real_##name}
#define HOOKS_END {NULL, NULL, NULL}

/* cuda_device.c */
int device_of(CUdevice ordinal);             /* the slice's index, or DEVICE_FOREIGN */
CUresult context_device(CUcontext context, CUdevice *ordinal);
CUresult stream_device(CUstream stream, CUdevice *ordinal);
CUcontext current_context(void);

/* cuda_charge.c: room in the slice before the driver is asked. What this process's pools keep unused is
 * given back when nothing else is left. */
CUresult charge(int device, uint64_t bytes);
/* The charge becomes what was really taken; the answer is an error when that does not fit. */
CUresult charge_grow(int device, uint64_t charged, uint64_t taken);

/* cuda_held.c: what this process holds, by address or handle. */
enum held_kind { HELD_POINTER, HELD_ARRAY, HELD_MIPMAP };
struct held {
    enum held_kind kind;
    uint64_t key;
    int device;
    uint64_t bytes;    /* charged; 0 for memory of a pool, which is charged as a whole */
    uint64_t size;     /* of the allocation, in memory of a pool */
    CUcontext context; /* what dies with it; NULL for memory of a pool */
    CUmemoryPool pool;
};
void held_add(const struct held *entry);
int held_take(enum held_kind kind, uint64_t key, struct held *entry); /* 1 when there was one */
void held_end_context(CUcontext context); /* releases all that died with it */

/* cuda_memory.c: every way to free a pointer. */
typedef CUresult free_function(void *arguments);
CUresult held_free(enum held_kind kind, uint64_t key, free_function *real, void *arguments);

/* cuda_pools.c */
void pools_settle(void); /* charges become what the driver says that pools have reserved */
void pools_trim(void);   /* gives back what is reserved and unused */
void pool_freed(const struct held *entry);

/* cuda_graphs.c */
void graphs_settle(void);
void graphs_trim(void);

#endif
