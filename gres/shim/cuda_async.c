/* Stream-ordered allocations from pools. */
#include "cuda_async.h"

#include "cuda_charge.h"
#include "cuda_device.h"
#include "cuda_graphs.h"
#include "cuda_guard.h"
#include "cuda_memory.h"
#include "cuda_pools.h"
#include "ledger.h"
#include "trace.h"

#include <time.h>

#define ASYNC_PAUSE INT64_C(100000)      /* ns between two tries */
#define ASYNC_PATIENCE INT64_C(1000000000) /* ns at most */

NEEDS(cuStreamIsCapturing, CUstream, int *);
NEEDS(cuStreamSynchronize, CUstream);
NEEDS(cuMemFreeAsync_ptsz, CUdeviceptr, CUstream);
NEEDS(cuDeviceGetMemPool, CUmemoryPool *, CUdevice);
NEEDS(cuMemFreeAsync, CUdeviceptr, CUstream);

struct request {
    const char *function;
    CUdeviceptr *address;
    size_t bytes;
    CUmemoryPool pool; /* NULL: the one of the stream's GPU */
    CUstream stream;
    CUresult (*real)(const struct request *request);
    CUstream plain; /* the stream as functions without _ptsz name it */
};

/* By how much the charge has to grow, if the pool's unused part is contiguous. Calls on their way may or may
 * not have taken their part already, so that is counted in full. */
static uint64_t async_growth(const struct pool *pool, uint64_t bytes)
{
    uint64_t needed = pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    if (__builtin_add_overflow(needed, pool->coming, &needed) ||
        __builtin_add_overflow(needed, bytes, &needed))
        return UINT64_MAX;
    return needed > pool->charged ? needed - pool->charged : 0;
}

static CUresult async_reserve(struct pool *pool, uint64_t bytes)
{
    if (!pool->handle) /* destroyed meanwhile */
        return CUDA_ERROR_INVALID_VALUE;
    pool_sync(pool);
    uint64_t more = async_growth(pool, bytes);
    if (ledger_reserve(pool->device, more)) {
        pools_trim();
        graphs_trim();
        more = async_growth(pool, bytes); /* this pool may have lost its unused part, too */
        if (ledger_reserve(pool->device, more))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool->charged += more;
    return CUDA_SUCCESS;
}

/* What other threads' calls are counted with is more than they take, so they are waited for before the
 * slice refuses; not for ever, since they may wait for something that this thread does next. */
static CUresult async_reserve_or_wait(struct pool *pool, uint64_t bytes)
{
    const struct timespec pause = {0, ASYNC_PAUSE};
    CUresult result = async_reserve(pool, bytes);
    for (int64_t waited = 0; result && pool->coming && waited < ASYNC_PATIENCE; waited += ASYNC_PAUSE) {
        guard_leave();
        nanosleep(&pause, NULL);
        guard_enter();
        result = async_reserve(pool, bytes);
    }
    return result;
}

/* The pool has grown by more than was reserved, and the slice has no room for that. It is charged until
 * the driver has it back. Without the guard. */
static void async_undo(const struct request *request)
{
    real_cuMemFreeAsync(*request->address, request->plain);
    real_cuStreamSynchronize(request->plain);
    *request->address = 0;
}

static void async_record(struct pool *pool, const struct request *request)
{
    if (!pool->handle) { /* destroyed meanwhile */
        ledger_charge(pool->device, request->bytes);
        pool->charged += request->bytes;
    }
    allocation_insert(&(struct allocation){.kind = ALLOCATION_POINTER,
                                           .key = *request->address,
                                           .device = pool->device,
                                           .size = request->bytes,
                                           .owner = pool});
    pool->live++;
}

/* Whether the slice has room for what the pool has grown by; it is charged in either case. */
static int async_fits(struct pool *pool)
{
    if (!pool->handle)
        return 1;
    uint64_t now = pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    if (now <= pool->charged)
        return 1;
    int result = !ledger_reserve(pool->device, now - pool->charged);
    if (result)
        pool->charged = now;
    else
        pool_sync(pool);
    return result;
}

/* After the driver has allocated: records it, or undoes it if it does not fit. */
static CUresult async_settle(struct pool *pool, const struct request *request)
{
    if (async_fits(pool)) {
        async_record(pool, request);
        return CUDA_SUCCESS;
    }
    guard_leave();
    async_undo(request);
    guard_enter();
    if (pool->handle)
        pool_trim(pool);
    trace_refused(request->function, request->bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* With the guard, which is not held while the driver allocates: reserve, call, record. */
static CUresult async_take(struct pool *pool, const struct request *request)
{
    pool_call_begins(pool);
    struct charge_retry retry = {0};
    CUresult result = async_reserve_or_wait(pool, request->bytes);
    if (result) {
        trace_refused(request->function, request->bytes);
    } else {
        pool->coming += request->bytes;
        guard_leave();
        do
            result = request->real(request);
        while (charge_again(result, &retry));
        guard_enter();
        if (!result)
            result = async_settle(pool, request);
        pool->coming -= request->bytes;
    }
    pool_call_ends(pool);
    return result;
}

/* An allocation that is captured into a graph takes place when the graph is launched. */
static int is_capturing(CUstream stream)
{
    int status;
    return real_cuStreamIsCapturing(stream, &status) || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult pool_of_stream(CUstream stream, CUmemoryPool *pool)
{
    CUdevice ordinal;
    CUresult result = stream_device(stream, &ordinal);
    if (result) /* not known for some streams; the driver uses the current context then */
        result = stream_device(NULL, &ordinal);
    return result ? result : real_cuDeviceGetMemPool(pool, ordinal);
}

static CUresult async_allocate(struct request request)
{
    CUmemoryPool handle = request.pool;
    if (!request.address || is_capturing(request.plain) || (!handle && pool_of_stream(request.plain, &handle)))
        return request.real(&request);
    guard_enter();
    struct pool *pool = pool_get(handle);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    const int charged = pool && pool->device != DEVICE_NONE;
    if (charged)
        result = async_take(pool, &request);
    guard_leave();
    return pool && !charged ? request.real(&request) : result;
}

static CUstream plain_of(CUstream stream) /* for functions with _ptsz */
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

#define ALLOCATE_ASYNC(name, plain_stream)                                                                \
    NEEDS(name, CUdeviceptr *, size_t, CUstream);                                                   \
    static CUresult call_##name(const struct request *request)                                      \
    {                                                                                               \
        return real_##name(request->address, request->bytes, request->stream);                      \
    }                                                                                               \
    EXPORT CUresult name(CUdeviceptr *address, size_t bytes, CUstream stream);                      \
    EXPORT CUresult name(CUdeviceptr *address, size_t bytes, CUstream stream)                       \
    {                                                                                               \
        return async_allocate((struct request){__func__, address, bytes, NULL, stream, call_##name, \
                                               plain_stream});                                      \
    }

#define ALLOCATE_FROM_POOL(name, plain_stream)                                                           \
    NEEDS(name, CUdeviceptr *, size_t, CUmemoryPool, CUstream);                                     \
    static CUresult call_##name(const struct request *request)                                      \
    {                                                                                               \
        return real_##name(request->address, request->bytes, request->pool, request->stream);       \
    }                                                                                               \
    EXPORT CUresult name(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream);   \
    EXPORT CUresult name(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)    \
    {                                                                                               \
        return async_allocate((struct request){__func__, address, bytes, pool, stream, call_##name, \
                                               plain_stream});                                      \
    }

ALLOCATE_ASYNC(cuMemAllocAsync, stream)
ALLOCATE_ASYNC(cuMemAllocAsync_ptsz, plain_of(stream))
ALLOCATE_FROM_POOL(cuMemAllocFromPoolAsync, stream)
ALLOCATE_FROM_POOL(cuMemAllocFromPoolAsync_ptsz, plain_of(stream))

struct free_call {
    CUdeviceptr address;
    CUstream stream;
};

static CUresult free_async(void *arguments)
{
    struct free_call *call = arguments;
    return real_cuMemFreeAsync(call->address, call->stream);
}

static CUresult free_async_ptsz(void *arguments)
{
    struct free_call *call = arguments;
    return real_cuMemFreeAsync_ptsz(call->address, call->stream);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    struct free_call call = {address, stream};
    return allocation_free(ALLOCATION_POINTER, address, free_async, &call);
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);
EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    struct free_call call = {address, stream};
    return allocation_free(ALLOCATION_POINTER, address, free_async_ptsz, &call);
}

const struct hook async_hooks[] = {
    NEEDED(cuDeviceGetMemPool),
    NEEDED(cuStreamIsCapturing),
    NEEDED(cuStreamSynchronize),
    HOOK(cuMemAllocAsync),
    HOOK(cuMemAllocAsync_ptsz),
    HOOK(cuMemAllocFromPoolAsync),
    HOOK(cuMemAllocFromPoolAsync_ptsz),
    HOOK(cuMemFreeAsync),
    HOOK(cuMemFreeAsync_ptsz),
    HOOKS_END,
};
