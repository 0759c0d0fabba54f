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
    bool primary, live, green;
    unsigned multiprocessors; /* of a green context */
    struct context *parent; /* the primary context of a green one */
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
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *found, CUdevice device);
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);

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
CUresult capture_kernel(CUgraph graph, uint64_t ns, uint64_t blocks);
CUgraph graph_make(void);
void graph_memory_free(struct allocation *allocation);
void graphs_forget(void);

/* vmm.c */
void mappings_forget(void);

struct lane; /* time.c */
struct stamp;

/* streams.c, captures.c */
CUgraph stream_capture(CUstream stream); /* NULL when it is not being captured */
void stream_join_capture(CUstream stream, CUgraph graph);
/* Captured, or run as time.c has room; so many blocks have as many multiprocessors at most. */
CUresult stream_launch(CUstream stream, uint64_t ns, uint64_t blocks);
CUresult stream_run(CUstream stream, uint64_t ns, uint64_t blocks);
CUresult stream_context(CUstream stream, struct context **found);
/* An event in the stream: where it is, to be asked by time_done(). */
struct lane *stream_event(CUstream stream, struct stamp *stamp, uint64_t *number);
struct lane *context_event(struct context *context, struct stamp *stamp, uint64_t *number);
void stream_wait(CUstream stream, struct lane *lane, uint64_t number);
void context_wait(struct context *context, struct lane *lane, uint64_t number);
CUresult stream_make(CUstream *stream, struct context *context, unsigned flags, int priority);
void streams_forget(void);
EXPORT CUresult cuCtxSynchronize_v2(CUcontext context);
EXPORT CUresult cuCtxRecordEvent(CUcontext context, CUevent event);
EXPORT CUresult cuCtxWaitEvent(CUcontext context, CUevent event);

/* NULL in functions whose name ends in _ptsz is the calling thread's own default stream. */
#define STREAM_LEGACY ((CUstream)1)
#define STREAM_PER_THREAD ((CUstream)2)
static inline CUstream per_thread(CUstream stream)
{
    return stream ? stream : STREAM_PER_THREAD;
}
#define PTSZ_OF(name, parameters, arguments)                                                       \
    EXPORT CUresult name##_ptsz parameters;                                                        \
    EXPORT CUresult name##_ptsz parameters                                                         \
    {                                                                                              \
        return name arguments;                                                                     \
    }

/* time.c: what is in one lane runs in order. */
struct stamp { /* when an event was over; freed with its last user */
    uint64_t end;
    unsigned users;
};
void stamp_drop(struct stamp *stamp);
struct lane *lane_open(int gpu, int priority);
void lane_close(struct lane *lane);
/* A piece of work, or with no time an event: its number in the lane. */
uint64_t time_give(struct lane *lane, uint64_t ns, unsigned width, struct stamp *stamp);
void time_give_wait(struct lane *lane, struct lane *after, uint64_t number);
uint64_t time_last(struct lane *lane); /* number of the last piece that was given */
bool time_done(struct lane *lane, uint64_t number);
void time_wait(struct lane *lane, uint64_t number);
void time_forget(void);

#endif
