/* Memory pools and allocations in stream order. A pool keeps what it has reserved until it is over
 * its release threshold at a synchronisation, trimmed or destroyed. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>

struct pool {
    int gpu;
    bool imported, destroyed;
    uint64_t reserved, used, reserved_high, used_high, threshold, limit;
    uint64_t other[4]; /* attributes without a meaning here */
    struct pool *next;
};

static struct pool *pools;
static struct pool *standard[STANDIN_GPUS]; /* of ordinals; made when first asked for */
static struct pool *chosen[STANDIN_GPUS];

void pools_forget(void)
{
    pools = NULL;
    memset(standard, 0, sizeof standard);
    memset(chosen, 0, sizeof chosen);
}

static struct pool *pool_make(int gpu)
{
    struct pool *made = calloc(1, sizeof *made);
    if (!made)
        abort();
    made->gpu = gpu;
    made->next = pools;
    return pools = made;
}

static struct pool *pool_default(int device)
{
    if (!standard[device])
        standard[device] = pool_make(device_gpu(device));
    return standard[device];
}

static struct pool *pool_chosen(int device)
{
    return chosen[device] ? chosen[device] : pool_default(device);
}

/* --- taking and giving back; all with the driver locked -------------------------------------------- */

static void shrink(struct pool *pool, uint64_t keep)
{
    const uint64_t least = pool->used > keep ? pool->used : keep;
    if (pool->reserved > least) {
        discharge(pool->gpu, pool->reserved - least);
        pool->reserved = least;
    }
}

CUresult pool_take(struct pool *pool, uint64_t bytes, CUdeviceptr *address)
{
    const uint64_t unused = pool->reserved - pool->used;
    const uint64_t more = bytes > unused ? bytes - unused : 0;
    if (!bytes || pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->limit && pool->reserved + more > pool->limit)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = charge(pool->gpu, more);
    if (result)
        return result;
    pool->reserved += more;
    pool->used += bytes;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    *address = address_take(bytes);
    allocation_add(POOLED, pool->gpu, *address, bytes)->pool = pool;
    return CUDA_SUCCESS;
}

void pool_give_back(struct allocation *allocation)
{
    struct pool *pool = allocation->pool;
    pool->used -= allocation->bytes;
    if (pool->destroyed)
        shrink(pool, 0);
}

/* A synchronisation of whatever kind is when pools let go of what they need not keep. */
void pools_synchronise(int gpu)
{
    for (struct pool *pool = pools; pool; pool = pool->next)
        if (pool->gpu == gpu)
            shrink(pool, pool->threshold);
}

/* --- pools ----------------------------------------------------------------------------------------- */

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *wanted)
{
    if (!pool || !wanted)
        return CUDA_ERROR_INVALID_VALUE;
    if (wanted->location.type != LOCATION_DEVICE || !device_valid(wanted->location.id))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver_lock);
    *pool = pool_make(device_gpu(wanted->location.id));
    (*pool)->limit = wanted->maxSize;
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}

static bool is_standard(const struct pool *pool)
{
    for (int i = 0; i < STANDIN_GPUS; i++)
        if (standard[i] == pool)
            return true;
    return false;
}

/* What still is allocated from it stays until it is freed. */
EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    pthread_mutex_lock(&driver_lock);
    CUresult result = is_standard(pool) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (int i = 0; !result && i < STANDIN_GPUS; i++)
        if (chosen[i] == pool)
            chosen[i] = NULL;
    if (!result) {
        pool->destroyed = true;
        shrink(pool, 0);
    }
    pthread_mutex_unlock(&driver_lock);
    return result;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver_lock);
    shrink(pool, keep);
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&driver_lock);
    if (attribute >= 1 && attribute < POOL_RELEASE_THRESHOLD)
        pool->other[attribute] = *(unsigned *)value;
    else if (attribute == POOL_RELEASE_THRESHOLD)
        pool->threshold = *(uint64_t *)value;
    else if (attribute == POOL_RESERVED_HIGH && *(uint64_t *)value == 0)
        pool->reserved_high = pool->reserved;
    else if (attribute == POOL_USED_HIGH && *(uint64_t *)value == 0)
        pool->used_high = pool->used;
    else
        result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&driver_lock);
    return result;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&driver_lock);
    switch (attribute) {
    case POOL_RELEASE_THRESHOLD: *(uint64_t *)value = pool->threshold; break;
    case POOL_RESERVED_CURRENT: *(uint64_t *)value = pool->reserved; break;
    case POOL_RESERVED_HIGH: *(uint64_t *)value = pool->reserved_high; break;
    case POOL_USED_CURRENT: *(uint64_t *)value = pool->used; break;
    case POOL_USED_HIGH: *(uint64_t *)value = pool->used_high; break;
    default:
        if (attribute >= 1 && attribute < POOL_RELEASE_THRESHOLD)
            *(unsigned *)value = (unsigned)pool->other[attribute];
        else
            result = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&driver_lock);
    return result;
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t number)
{
    (void)pool, (void)access, (void)number;
    return CUDA_SUCCESS;
}

static CUresult pool_of_device(CUmemoryPool *pool, CUdevice device, bool standard_one)
{
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&driver_lock);
    *pool = standard_one ? pool_default(device) : pool_chosen(device);
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    return pool_of_device(pool, device, true);
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    return pool_of_device(pool, device, false);
}

EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    chosen[device] = pool;
    return CUDA_SUCCESS;
}

/* Since CUDA 13: by location instead of device. */
EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
    if (!pool || !location)
        return CUDA_ERROR_INVALID_VALUE;
    (void)type;
    return pool_of_device(pool, location->id, true);
}

EXPORT CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type)
{
    if (!pool || !location)
        return CUDA_ERROR_INVALID_VALUE;
    (void)type;
    return pool_of_device(pool, location->id, false);
}

EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool pool)
{
    (void)type;
    return cuDeviceSetMemPool(location->id, pool);
}

/* --- allocations in stream order ------------------------------------------------------------------- */

static CUresult take(CUdeviceptr *address, size_t bytes, struct pool *pool, CUstream stream)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    CUgraph graph = stream_capture(stream);
    pthread_mutex_lock(&driver_lock);
    if (!pool)
        pool = pool_chosen(context->device);
    result = graph ? capture_alloc(graph, pool->gpu, bytes, address) : pool_take(pool, bytes, address);
    pthread_mutex_unlock(&driver_lock);
    return result;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    return take(address, bytes, NULL, stream);
}
PTSZ(cuMemAllocAsync);

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                        CUstream stream)
{
    return address && pool ? take(address, bytes, pool, stream) : CUDA_ERROR_INVALID_VALUE;
}
PTSZ(cuMemAllocFromPoolAsync);

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (result || !address)
        return result;
    CUgraph graph = stream_capture(stream);
    pthread_mutex_lock(&driver_lock);
    result = graph ? capture_free(graph, address) : allocation_free(address);
    pthread_mutex_unlock(&driver_lock);
    return result;
}
PTSZ(cuMemFreeAsync);

/* --- a pool of another process --------------------------------------------------------------------- */

EXPORT CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, int type,
                                                 unsigned long long flags)
{
    (void)type, (void)flags;
    *(int *)handle = pool->gpu; /* only imports of this stand-in read it */
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, int type,
                                                   unsigned long long flags)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    (void)type, (void)flags;
    pthread_mutex_lock(&driver_lock);
    *pool = pool_make((int)(intptr_t)handle);
    (*pool)->imported = true;
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address)
{
    pthread_mutex_lock(&driver_lock);
    struct allocation *found = allocation_find(address);
    if (found)
        memcpy(data, &found->bytes, sizeof found->bytes);
    pthread_mutex_unlock(&driver_lock);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool,
                                       CUmemPoolPtrExportData *data)
{
    uint64_t bytes;
    memcpy(&bytes, data, sizeof bytes);
    pthread_mutex_lock(&driver_lock);
    *address = address_take(bytes);
    allocation_add(IMPORTED, pool->gpu, *address, bytes);
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}
