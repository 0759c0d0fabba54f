/* Allocations in the order of a stream, from pools. A pool takes memory in pieces of its own size and
 * keeps it after it was freed, so what is charged is what the driver says that the pool has reserved. */
#include "cuda_shim.h"

#include <stdlib.h>

struct pool {
    struct pool *next;
    CUmemoryPool handle; /* NULL once destroyed: what is still allocated from it stays until freed */
    int device;          /* DEVICE_NONE: the host's, or another process's, and never charged */
    uint64_t charged;
    unsigned int live; /* allocations from it */
};

static struct pool *pools;

NEEDS(cuMemPoolGetAttribute, CUmemoryPool, int, void *);
NEEDS(cuDeviceGetCount, int *);
NEEDS(cuDeviceGetMemPool, CUmemoryPool *, CUdevice);
NEEDS(cuDeviceGetDefaultMemPool, CUmemoryPool *, CUdevice);
NEEDS(cuStreamIsCapturing, CUstream, int *);
NEEDS(cuStreamSynchronize, CUstream);
NEEDS(cuMemFreeAsync, CUdeviceptr, CUstream);
NEEDS(cuMemFreeAsync_ptsz, CUdeviceptr, CUstream);
NEEDS(cuMemPoolTrimTo, CUmemoryPool, size_t);

/* --- the pools of this process, all with the guard entered --- */

static struct pool *pool_find(CUmemoryPool handle)
{
    struct pool *pool = pools;
    while (pool && pool->handle != handle)
        pool = pool->next;
    return pool;
}

static struct pool *pool_add(CUmemoryPool handle, int device)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    *pool = (struct pool){.next = pools, .handle = handle, .device = device};
    return pools = pool;
}

/* The driver has made one default pool for each GPU, which no call of ours has seen. */
static int device_of_unknown(CUmemoryPool handle)
{
    int count = 0;
    CUmemoryPool standard;
    real_cuDeviceGetCount(&count);
    for (CUdevice ordinal = 0; ordinal < count; ordinal++)
        if (!real_cuDeviceGetDefaultMemPool(&standard, ordinal) && standard == handle)
            return device_of(ordinal);
    return current_device();
}

static struct pool *pool_get(CUmemoryPool handle)
{
    struct pool *pool = pool_find(handle);
    return pool ? pool : pool_add(handle, device_of_unknown(handle));
}

static uint64_t figure(const struct pool *pool, int attribute)
{
    uint64_t value;
    return real_cuMemPoolGetAttribute(pool->handle, attribute, &value) ? pool->charged : value;
}

static uint64_t reserved(const struct pool *pool)
{
    return figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
}

static void settle(struct pool *pool)
{
    if (!pool->handle || pool->device < 0)
        return;
    uint64_t now = reserved(pool);
    if (now > pool->charged)
        ledger_charge(pool->device, now - pool->charged);
    else
        ledger_release(pool->device, pool->charged - now);
    pool->charged = now;
}

void pools_settle(void)
{
    if (!__atomic_load_n(&pools, __ATOMIC_RELAXED))
        return;
    guard_enter();
    for (struct pool *pool = pools; pool; pool = pool->next)
        settle(pool);
    guard_leave();
}

void pools_trim(void)
{
    guard_enter();
    for (struct pool *pool = pools; pool; pool = pool->next)
        if (pool->handle && pool->device >= 0) {
            real_cuMemPoolTrimTo(pool->handle, 0);
            settle(pool);
        }
    guard_leave();
}

void pools_forget(void)
{
    pools = NULL;
}

/* --- taking --- */

struct request {
    CUdeviceptr *address;
    size_t bytes;
    CUmemoryPool pool; /* NULL: the one of the stream's GPU */
    CUstream stream;
    CUresult (*real)(const struct request *request);
    CUstream plain; /* the stream as functions without _ptsz name it */
};

/* What the pool has to grow by, if its unused part is of one piece. */
static uint64_t growth(const struct pool *pool, uint64_t bytes)
{
    uint64_t used = figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    uint64_t unused = used < pool->charged ? pool->charged - used : 0;
    return bytes > unused ? bytes - unused : 0;
}

static CUresult make_room(struct pool *pool, uint64_t bytes)
{
    settle(pool);
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

/* The pool has grown by more than was asked for, and the slice has no room for that. */
static CUresult give_up(struct pool *pool, const struct request *request)
{
    real_cuMemFreeAsync(*request->address, request->plain);
    real_cuStreamSynchronize(request->plain);
    real_cuMemPoolTrimTo(pool->handle, 0);
    settle(pool);
    *request->address = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult take(struct pool *pool, const struct request *request)
{
    CUresult answer = make_room(pool, request->bytes);
    if (!answer)
        answer = request->real(request);
    if (answer) {
        settle(pool);
        return answer;
    }
    uint64_t now = reserved(pool);
    if (now > pool->charged && ledger_reserve(pool->device, now - pool->charged))
        return give_up(pool, request);
    if (now < pool->charged)
        ledger_release(pool->device, pool->charged - now);
    pool->charged = now;
    held_add(&(struct held){.kind = HELD_POINTER,
                            .key = *request->address,
                            .device = pool->device,
                            .size = request->bytes,
                            .owner = pool});
    pool->live++;
    return CUDA_SUCCESS;
}

/* What is captured into a graph is taken when the graph is launched. */
static int is_capturing(CUstream stream)
{
    int status;
    return real_cuStreamIsCapturing(stream, &status) || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult allocate(struct request request)
{
    CUdevice ordinal;
    CUmemoryPool handle = request.pool;
    if (is_capturing(request.plain) || stream_device(request.plain, &ordinal) ||
        (!handle && real_cuDeviceGetMemPool(&handle, ordinal)))
        return request.real(&request);
    guard_enter();
    struct pool *pool = pool_get(handle);
    CUresult answer;
    if (!pool)
        answer = CUDA_ERROR_OUT_OF_MEMORY;
    else if (pool->device == DEVICE_NONE)
        answer = request.real(&request);
    else
        answer = take(pool, &request);
    guard_leave();
    return answer;
}

static CUstream plain_of(CUstream stream) /* of a function with _ptsz */
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

/* --- freeing --- */

static void pool_remove(struct pool *pool)
{
    struct pool **place = &pools;
    while (*place != pool)
        place = &(*place)->next;
    *place = pool->next;
    if (pool->device >= 0)
        ledger_release(pool->device, pool->charged);
    free(pool);
}

void pool_freed(const struct held *entry)
{
    struct pool *pool = entry->owner;
    guard_enter();
    pool->live--;
    if (pool->handle) {
        settle(pool);
    } else {
        ledger_release(pool->device, entry->size);
        pool->charged -= entry->size;
        if (!pool->live)
            pool_remove(pool);
    }
    guard_leave();
}

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
    return held_free(HELD_POINTER, address, free_async, &(struct free_call){address, stream});
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);
EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    return held_free(HELD_POINTER, address, free_async_ptsz, &(struct free_call){address, stream});
}

/* --- pools made, found and ended --- */

static void note(CUmemoryPool handle, int device)
{
    guard_enter();
    if (!pool_find(handle))
        pool_add(handle, device);
    guard_leave();
}

static int device_at(const CUmemLocation *location, int type)
{
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        return device_of(location->id);
    return type == CU_MEM_ALLOCATION_TYPE_MANAGED ? current_device() : DEVICE_NONE;
}

WRAP(cuMemPoolCreate, CUmemoryPool *pool, const CUmemPoolProps *wanted)
{
    CUresult answer = real_cuMemPoolCreate(pool, wanted);
    if (!answer)
        note(*pool, device_at(&wanted->location, wanted->allocType));
    return answer;
}

/* Its memory is charged where it was allocated. */
WRAP(cuMemPoolImportFromShareableHandle, CUmemoryPool *pool, void *handle, int type, uint64_t flags)
{
    CUresult answer = real_cuMemPoolImportFromShareableHandle(pool, handle, type, flags);
    if (!answer)
        note(*pool, DEVICE_NONE);
    return answer;
}

/* Since CUDA 13 the host has pools, too. */
WRAP(cuMemGetDefaultMemPool, CUmemoryPool *pool, CUmemLocation *location, int type)
{
    CUresult answer = real_cuMemGetDefaultMemPool(pool, location, type);
    if (!answer)
        note(*pool, device_at(location, type));
    return answer;
}

WRAP(cuMemGetMemPool, CUmemoryPool *pool, CUmemLocation *location, int type)
{
    CUresult answer = real_cuMemGetMemPool(pool, location, type);
    if (!answer)
        note(*pool, device_at(location, type));
    return answer;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    CUresult answer = real_cuMemPoolTrimTo(pool, keep);
    pools_settle();
    return answer;
}

/* Only what is in use stays charged: each allocation gives back its own part from now on. */
static void end(struct pool *pool, uint64_t used)
{
    if (!pool)
        return;
    if (pool->device >= 0 && pool->charged > used)
        ledger_release(pool->device, pool->charged - used);
    pool->charged = used;
    pool->handle = NULL;
    if (!pool->live)
        pool_remove(pool);
}

WRAP(cuMemPoolDestroy, CUmemoryPool handle)
{
    guard_enter();
    struct pool *pool = pool_find(handle);
    uint64_t used = 0;
    if (pool) {
        settle(pool);
        used = figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    }
    CUresult answer = real_cuMemPoolDestroy(handle);
    if (!answer)
        end(pool, used);
    guard_leave();
    return answer;
}

const struct hook pool_hooks[] = {
    NEEDED(cuMemPoolGetAttribute),
    NEEDED(cuDeviceGetCount),
    NEEDED(cuDeviceGetMemPool),
    NEEDED(cuDeviceGetDefaultMemPool),
    NEEDED(cuStreamIsCapturing),
    NEEDED(cuStreamSynchronize),
    HOOK(cuMemAllocAsync),
    HOOK(cuMemAllocAsync_ptsz),
    HOOK(cuMemAllocFromPoolAsync),
    HOOK(cuMemAllocFromPoolAsync_ptsz),
    HOOK(cuMemFreeAsync),
    HOOK(cuMemFreeAsync_ptsz),
    HOOK(cuMemPoolCreate),
    HOOK(cuMemPoolImportFromShareableHandle),
    HOOK(cuMemGetDefaultMemPool),
    HOOK(cuMemGetMemPool),
    HOOK(cuMemPoolTrimTo),
    HOOK(cuMemPoolDestroy),
    HOOKS_END,
};
