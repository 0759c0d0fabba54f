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

/* cuda_charge.c: room in the slice before the driver is asked. What this process's pools and graphs keep
 * unused is given back before the answer is no. */
CUresult charge(int device, uint64_t bytes);
/* The charge becomes what was really taken; an error, and no change, when that does not fit. */
CUresult charge_adjust(int device, uint64_t charged, uint64_t taken);
/* One thread at a time where the driver's own figures are compared (pools, graphs) or several records
 * change together (vmm); a thread may enter it again. */
void guard_enter(void);
void guard_leave(void);

/* cuda_held.c: what this process holds, by address or handle. */
enum held_kind { HELD_POINTER, HELD_ARRAY, HELD_MIPMAP, HELD_HANDLE, HELD_MAPPING, HELD_GRAPH };
struct held {
    enum held_kind kind;
    uint64_t key;
    int device;
    uint64_t bytes;    /* charged for it alone; 0 when its owner is charged */
    uint64_t size;     /* of its own, when its owner is charged */
    CUcontext context; /* with which it ends; NULL when it outlives contexts */
    void *owner;       /* a struct of the file that added it */
};
void held_add(const struct held *entry);
/* Each 1 when there was one. */
int held_take(enum held_kind kind, uint64_t key, struct held *entry);
int held_look(enum held_kind kind, uint64_t key, struct held *entry);
int held_around(enum held_kind kind, uint64_t address, struct held *entry); /* slow */
void held_end_context(CUcontext context); /* releases all that ended with it */
void held_forget(void);

/* cuda_memory.c: frees by the driver's function, and gives back what was charged. */
typedef CUresult free_function(void *arguments);
CUresult held_free(enum held_kind kind, uint64_t key, free_function *real, void *arguments);

/* cuda_pools.c */
void pools_settle(void); /* charges become what the driver says that pools have reserved */
void pools_trim(void);   /* gives back what is reserved and unused */
void pool_freed(const struct held *entry);
void pools_forget(void);

/* cuda_vmm.c */
void tiles_end(void *array);
void tiles_forget(void);

/* cuda_graphs.c */
void graphs_settle(void);
void graphs_trim(void);
void graphs_forget(void);

#endif
