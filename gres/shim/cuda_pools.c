/* Memory pools. A pool grows in pieces of its own size and keeps memory after it was freed, so what the
 * driver reports as reserved is charged. */
#include "cuda_pools.h"

#include "cuda_device.h"
#include "cuda_guard.h"
#include "ledger.h"

#include <stdlib.h>

static struct pool *pools;

NEEDS(cuMemPoolGetAttribute, CUmemoryPool, int, void *);
NEEDS(cuDeviceGetCount, int *);
NEEDS(cuDeviceGetDefaultMemPool, CUmemoryPool *, CUdevice);
NEEDS(cuMemPoolTrimTo, CUmemoryPool, size_t);

/* --- the pools of this process --- */

static struct pool *pool_find(CUmemoryPool handle)
{
    struct pool *pool = handle ? pools : NULL;
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

/* The driver's default pools, one for each GPU, were created by no wrapped call. */
static int pool_device(CUmemoryPool handle)
{
    int count = 0;
    CUmemoryPool standard;
    real_cuDeviceGetCount(&count);
    for (CUdevice ordinal = 0; ordinal < count; ordinal++)
        if (!real_cuDeviceGetDefaultMemPool(&standard, ordinal) && standard == handle)
            return device_of(ordinal);
    return current_device();
}

struct pool *pool_get(CUmemoryPool handle)
{
    struct pool *pool = pool_find(handle);
    return pool ? pool : pool_add(handle, pool_device(handle));
}

uint64_t pool_attribute(const struct pool *pool, int attribute)
{
    uint64_t value;
    return real_cuMemPoolGetAttribute(pool->handle, attribute, &value) ? pool->charged : value;
}

/* Never less than the driver has reserved, nor than calls on their way may still take. */
static uint64_t pool_least(const struct pool *pool, uint64_t reserved)
{
    if (!pool->coming)
        return reserved;
    uint64_t used = pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) + pool->coming;
    return used > reserved ? used : reserved;
}

void pool_sync(struct pool *pool)
{
    if (!pool->handle || pool->device < 0)
        return;
    uint64_t now = pool_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    if (now > pool->charged) {
        ledger_charge(pool->device, now - pool->charged);
        pool->charged = now;
        return;
    }
    uint64_t least = pool_least(pool, now);
    if (least < pool->charged) {
        ledger_release(pool->device, pool->charged - least);
        pool->charged = least;
    }
}

void pools_sync(void)
{
    if (!__atomic_load_n(&pools, __ATOMIC_RELAXED))
        return;
    guard_enter();
    for (struct pool *pool = pools; pool; pool = pool->next)
        pool_sync(pool);
    guard_leave();
}

void pool_trim(struct pool *pool)
{
    real_cuMemPoolTrimTo(pool->handle, 0);
    pool_sync(pool);
}

void pools_trim(void)
{
    guard_enter();
    for (struct pool *pool = pools; pool; pool = pool->next)
        if (pool->handle && pool->device >= 0)
            pool_trim(pool);
    guard_leave();
}

void pools_forget(void)
{
    pools = NULL;
}

static void pool_remove_if_gone(struct pool *pool)
{
    struct pool **place = &pools;
    if (pool->handle || pool->live || pool->calls)
        return;
    while (*place != pool)
        place = &(*place)->next;
    *place = pool->next;
    if (pool->device >= 0)
        ledger_release(pool->device, pool->charged);
    free(pool);
}

void pool_call_begins(struct pool *pool)
{
    pool->calls++;
}

void pool_call_ends(struct pool *pool)
{
    pool->calls--;
    pool_sync(pool);
    pool_remove_if_gone(pool);
}

void pool_freed(const struct allocation *entry)
{
    struct pool *pool = entry->owner;
    guard_enter();
    pool->live--;
    if (pool->handle) {
        pool_sync(pool);
    } else {
        ledger_release(pool->device, entry->size);
        pool->charged -= entry->size;
        pool_remove_if_gone(pool);
    }
    guard_leave();
}

/* --- creating, finding and destroying pools --- */

static void pool_note(CUmemoryPool handle, int device)
{
    guard_enter();
    if (!pool_find(handle))
        pool_add(handle, device);
    guard_leave();
}

static int pool_device_at(const CUmemLocation *location, int type)
{
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        return device_of(location->id);
    return type == CU_MEM_ALLOCATION_TYPE_MANAGED ? current_device() : DEVICE_NONE;
}

WRAP(cuMemPoolCreate, CUmemoryPool *pool, const CUmemPoolProps *wanted)
{
    CUresult result = real_cuMemPoolCreate(pool, wanted);
    if (!result && pool && wanted)
        pool_note(*pool, pool_device_at(&wanted->location, wanted->allocType));
    return result;
}

/* Its memory is charged where it was allocated. */
WRAP(cuMemPoolImportFromShareableHandle, CUmemoryPool *pool, void *handle, int type, uint64_t flags)
{
    CUresult result = real_cuMemPoolImportFromShareableHandle(pool, handle, type, flags);
    if (!result && pool)
        pool_note(*pool, DEVICE_NONE);
    return result;
}

/* Since CUDA 13 the host has pools, too. */
WRAP(cuMemGetDefaultMemPool, CUmemoryPool *pool, CUmemLocation *location, int type)
{
    CUresult result = real_cuMemGetDefaultMemPool(pool, location, type);
    if (!result && pool && location)
        pool_note(*pool, pool_device_at(location, type));
    return result;
}

WRAP(cuMemGetMemPool, CUmemoryPool *pool, CUmemLocation *location, int type)
{
    CUresult result = real_cuMemGetMemPool(pool, location, type);
    if (!result && pool && location)
        pool_note(*pool, pool_device_at(location, type));
    return result;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    CUresult result = real_cuMemPoolTrimTo(pool, keep);
    pools_sync();
    return result;
}

/* Before the driver destroys it, since nothing may be asked about it afterwards. Returns what is reserved and
 * not in use, which will be released; of what is in use, each allocation releases its own part. */
static uint64_t pool_ending(struct pool *pool)
{
    pool_sync(pool);
    uint64_t used = pool_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    pool->handle = NULL;
    pool_call_begins(pool);
    return used < pool->charged ? pool->charged - used : 0;
}

static void pool_ended(struct pool *pool, uint64_t unused)
{
    if (pool->device >= 0)
        ledger_release(pool->device, unused);
    pool->charged -= unused;
}

WRAP(cuMemPoolDestroy, CUmemoryPool handle)
{
    uint64_t unused = 0;
    guard_enter();
    struct pool *pool = pool_find(handle);
    if (pool)
        unused = pool_ending(pool);
    guard_leave();
    CUresult result = real_cuMemPoolDestroy(handle);
    if (!pool)
        return result;
    guard_enter();
    if (result)
        pool->handle = handle;
    else
        pool_ended(pool, unused);
    pool_call_ends(pool);
    guard_leave();
    return result;
}

const struct hook pool_hooks[] = {
    NEEDED(cuMemPoolGetAttribute),
    NEEDED(cuDeviceGetCount),
    NEEDED(cuDeviceGetDefaultMemPool),
    HOOK(cuMemPoolCreate),
    HOOK(cuMemPoolImportFromShareableHandle),
    HOOK(cuMemGetDefaultMemPool),
    HOOK(cuMemGetMemPool),
    HOOK(cuMemPoolTrimTo),
    HOOK(cuMemPoolDestroy),
    HOOKS_END,
};
