/* What the parts of the stand-in libcuda.so.1 share. */
#ifndef STANDIN_DRIVER_H
#define STANDIN_DRIVER_H

#include "cuda.h"
#include "state.h"

#include <pthread.h>
#include <stdbool.h>

#define DRIVER_VERSION 13010

struct context {
    int device; /* ordinal, after CUDA_VISIBLE_DEVICES */
    int references; /* of a primary context */
    bool primary, live;
    unsigned flags;
};

/* devices.c: everything in this process is behind one lock; calls are short. */
extern pthread_mutex_t driver_lock;
int device_count(void);
int device_gpu(int ordinal); /* its number in the shared state */
bool device_valid(int ordinal);
CUresult need_init(void);
#define NEED_DEVICE(ordinal)                                                                       \
    do {                                                                                           \
        if (need_init())                                                                           \
            return CUDA_ERROR_NOT_INITIALIZED;                                                     \
        if (!device_valid(ordinal))                                                                \
            return CUDA_ERROR_INVALID_DEVICE;                                                      \
    } while (0)

/* contexts.c */
struct context *context_current(void); /* NULL for none */
CUresult need_context(struct context **found);
void contexts_forget(void);
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context);
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context);

/* A function whose first parameter says for how many microseconds it runs. */
struct kernel { int unused; };

/* memory.c */
CUresult charge(int gpu, uint64_t bytes); /* physical memory, of all processes */
void discharge(int gpu, uint64_t bytes);
/* What NVML's figure of this process differs by from what it has been charged. */
void figure_add(int gpu, int64_t bytes);

enum kind { LINEAR, MANAGED, HOST, POOLED, IMPORTED, GRAPH };
struct allocation {
    struct allocation *next;
    struct context *context; /* whose end is the allocation's end, too */
    enum kind kind;
    int gpu;
    CUdeviceptr address;
    uint64_t bytes;
    CUmemoryPool pool;
};
struct allocation *allocation_add(enum kind kind, int gpu, CUdeviceptr address, uint64_t bytes);
struct allocation *allocation_find(CUdeviceptr address);
CUresult allocation_free(CUdeviceptr address); /* whatever made it */
void allocations_end(struct context *context);
void allocations_forget(void);
CUdeviceptr address_take(uint64_t bytes); /* never used twice */

/* managed.c, shared_memory.c */
void managed_end(struct allocation *allocation);
void import_end(struct allocation *allocation);

/* blocks.c; `low` addresses have 32 bits */
CUresult blocks_take(int gpu, uint64_t bytes, bool low, CUdeviceptr *address);
void blocks_give_back(int gpu, CUdeviceptr address, uint64_t bytes);
uint64_t blocks_of(uint64_t bytes); /* of those that are not shared */
void blocks_forget(void);

/* pools.c */
CUresult pool_take(CUmemoryPool pool, uint64_t bytes, CUdeviceptr *address);
void pool_give_back(struct allocation *allocation);
void pools_synchronise(int gpu);
void pools_forget(void);

/* graphs.c: a stream that is being captured collects nodes instead of running. */
CUresult capture_alloc(CUgraph graph, int gpu, uint64_t bytes, CUdeviceptr *address);
CUresult capture_free(CUgraph graph, CUdeviceptr address);
CUresult capture_kernel(CUgraph graph, uint64_t ns);
CUgraph graph_make(void);
void graph_memory_free(struct allocation *allocation);
void graphs_forget(void);

/* vmm.c */
void mappings_forget(void);

/* streams.c */
CUgraph stream_capture(CUstream stream); /* NULL when it is not being captured */
CUresult stream_launch(CUstream stream, uint64_t ns); /* captured, or run as time.c has room */
void stream_run(CUstream stream, struct context *context, uint64_t ns);
void streams_forget(void);

/* time.c: the work of this process for a GPU, one piece after the other. */
uint64_t time_give(int gpu, uint64_t ns, uint64_t *end); /* the piece's number; *end is set later */
uint64_t time_last(int gpu); /* number of the last piece that was given */
bool time_done(int gpu, uint64_t number);
void time_wait(int gpu, uint64_t number);
void time_forget(void);

#endif
