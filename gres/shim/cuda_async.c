/* Stream-ordered allocations from pools. */
#include "cuda_async.h"

#include "cuda_device.h"
#include "cuda_graphs.h"
#include "cuda_guard.h"
#include "cuda_memory.h"
#include "cuda_pools.h"
#include "ledger.h"

NEEDS(cuStreamIsCapturing, CUstream, int *);
NEEDS(cuStreamSynchronize, CUstream);
NEEDS(cuMemFreeAsync_ptsz, CUdeviceptr, CUstream);
NEEDS(cuDeviceGetMemPool, CUmemoryPool *, CUdevice);
NEEDS(cuMemFreeAsync, CUdeviceptr, CUstream);

struct request {
    CUdeviceptr *address;
    size_t bytes;
    CUmemoryPool pool; /* NULL: the one of the stream's GPU */
    CUstream stream;
    CUresult (*real)(const struct request *request);
    CUstream plain; /* the stream as functions without _ptsz name it */
};

/* By how much the pool has to grow, if its unused part is contiguous. */
static uint64_t growth(const struct pool *pool, uint64_t bytes)
{
    uint64_t used = pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    uint64_t unused = used < pool->charged ? pool->charged - used : 0;
    return bytes > unused ? bytes - unused : 0;
}

static CUresult make_room(struct pool *pool, uint64_t bytes)
{
    pool_sync(pool);
    uint64_t more = growth(pool, bytes);
    if (ledger_reserve(pool->device, more)) {
        pools_trim();
        graphs_trim();
        more = growth(pool, bytes); /* this pool may have lost its unused part, too */
        if (ledger_reserve(pool->device, more))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool->charged += more;
    return CUDA_SUCCESS;
}

/* The pool has grown by more than requested, and the slice has no room for that. */
static CUresult give_up(struct pool *pool, const struct request *request)
{
    real_cuMemFreeAsync(*request->address, request->plain);
    real_cuStreamSynchronize(request->plain);
    pool_trim(pool);
    *request->address = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult take(struct pool *pool, const struct request *request)
{
    CUresult result = make_room(pool, request->bytes);
    if (!result)
        result = request->real(request);
    if (result) {
        pool_sync(pool);
        return result;
    }
    uint64_t now = pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    if (now > pool->charged && ledger_reserve(pool->device, now - pool->charged))
        return give_up(pool, request);
    if (now < pool->charged)
        ledger_release(pool->device, pool->charged - now);
    pool->charged = now;
    allocation_insert(&(struct allocation){.kind = ALLOCATION_POINTER,
                                           .key = *request->address,
                                           .device = pool->device,
                                           .size = request->bytes,
                                           .owner = pool});
    pool->live++;
    return CUDA_SUCCESS;
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

static CUresult allocate(struct request request)
{
    CUmemoryPool handle = request.pool;
    if (is_capturing(request.plain) || (!handle && pool_of_stream(request.plain, &handle)))
        return request.real(&request);
    guard_enter();
    struct pool *pool = pool_get(handle);
    CUresult result;
    if (!pool)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else if (pool->device == DEVICE_NONE)
        result = request.real(&request);
    else
        result = take(pool, &request);
    guard_leave();
    return result;
}

static CUstream plain_of(CUstream stream) /* for functions with _ptsz */
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

#define ALLOCATE(name, plain_stream)                                                                \
    NEEDS(name, CUdeviceptr *, size_t, CUstream);                                                   \
    static CUresult call_##name(const struct request *request)                                      \
    {                                                                                               \
        return real_##name(request->address, request->bytes, request->stream);                      \
    }                                                                                               \
    EXPORT CUresult name(CUdeviceptr *address, size_t bytes, CUstream stream);                      \
    EXPORT CUresult name(CUdeviceptr *address, size_t bytes, CUstream stream)                       \
    {                                                                                               \
        return allocate((struct request){address, bytes, NULL, stream, call_##name, plain_stream}); \
    }

#define ALLOCATE_FROM(name, plain_stream)                                                           \
    NEEDS(name, CUdeviceptr *, size_t, CUmemoryPool, CUstream);                                     \
    static CUresult call_##name(const struct request *request)                                      \
    {                                                                                               \
        return real_##name(request->address, request->bytes, request->pool, request->stream);       \
    }                                                                                               \
    EXPORT CUresult name(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream);   \
    EXPORT CUresult name(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)    \
    {                                                                                               \
        return allocate((struct request){address, bytes, pool, stream, call_##name, plain_stream}); \
    }

ALLOCATE(cuMemAllocAsync, stream)
ALLOCATE(cuMemAllocAsync_ptsz, plain_of(stream))
ALLOCATE_FROM(cuMemAllocFromPoolAsync, stream)
ALLOCATE_FROM(cuMemAllocFromPoolAsync_ptsz, plain_of(stream))

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
