/* Plain and managed device memory. */
#include "cuda_memory.h"

#include "cuda_blocks.h"
#include "cuda_charge.h"
#include "cuda_device.h"
#include "cuda_pools.h"
#include "ledger.h"
#include "trace.h"

NEEDS(cuMemFree_v2, CUdeviceptr);
NEEDS(cuMemFree, CUdeviceptr_v1);

/* --- allocating: charge, then the driver, then the record of it --- */

/* Nothing is allocated without an address to return; the driver returns the error then.
 *
 * The body of a wrapper that allocates: what the driver may take for `least` bytes is charged before `call`,
 * and for the `bytes` that it allocated afterwards, which for rows with a pitch only the driver knows. If
 * that does not fit, `undo` frees the memory. */
#define ALLOCATE(address, least, call, bytes, undo)                                                 \
    const int device = current_device();                                                            \
    if (device == DEVICE_NONE || !(address))                                                        \
        return (call);                                                                              \
    const uint64_t charged = block_most(least);                                                     \
    struct charge_retry retry = {0};                                                                \
    CUresult result = charge(device, charged);                                                      \
    if (result) {                                                                                   \
        trace_refused(__func__, charged);                                                           \
        return result;                                                                              \
    }                                                                                               \
    do                                                                                              \
        result = (call);                                                                            \
    while (charge_again(result, &retry));                                                           \
    if (!result && charge_adjust(device, charged, block_most(bytes))) {                             \
        undo(*(address));                                                                           \
        trace_refused(__func__, (bytes));                                                           \
        result = CUDA_ERROR_OUT_OF_MEMORY;                                                          \
    }                                                                                               \
    if (!result)                                                                                    \
        block_record(device, *(address), (bytes), current_context());                               \
    else                                                                                            \
        ledger_release(device, charged);                                                            \
    return result

WRAP(cuMemAlloc_v2, CUdeviceptr *address, size_t bytes)
{
    ALLOCATE(address, bytes, real_cuMemAlloc_v2(address, bytes), bytes, real_cuMemFree_v2);
}

WRAP(cuMemAlloc, CUdeviceptr_v1 *address, unsigned int bytes)
{
    ALLOCATE(address, bytes, real_cuMemAlloc(address, bytes), bytes, real_cuMemFree);
}

WRAP(cuMemAllocManaged, CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    ALLOCATE(address, bytes, real_cuMemAllocManaged(address, bytes, flags), bytes, real_cuMemFree_v2);
}

/* Rows without padding: the least that the driver can take. */
static uint64_t unpadded(size_t width, size_t height)
{
    uint64_t bytes;
    return __builtin_mul_overflow((uint64_t)width, (uint64_t)height, &bytes) ? UINT64_MAX : bytes;
}

WRAP(cuMemAllocPitch_v2, CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
     unsigned int element)
{
    ALLOCATE(address, unpadded(width, height),
             real_cuMemAllocPitch_v2(address, pitch, width, height, element),
             (uint64_t)(pitch ? *pitch : width) * height, real_cuMemFree_v2);
}

WRAP(cuMemAllocPitch, CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width,
     unsigned int height, unsigned int element)
{
    ALLOCATE(address, unpadded(width, height),
             real_cuMemAllocPitch(address, pitch, width, height, element),
             (uint64_t)(pitch ? *pitch : width) * height, real_cuMemFree);
}

/* --- freeing --- */

/* The record is removed first: once the driver has freed an address, another thread may get it. */
CUresult allocation_free(enum allocation_kind kind, uint64_t key, free_function *real, void *arguments)
{
    struct allocation entry;
    int had = allocation_remove(kind, key, &entry);
    CUresult result = real(arguments);
    if (had && result)
        allocation_insert(&entry);
    else if (had && entry.owner)
        pool_freed(&entry);
    else if (had)
        block_release(&entry);
    return result;
}

static CUresult free_pointer(void *address)
{
    return real_cuMemFree_v2(*(CUdeviceptr *)address);
}

static CUresult free_pointer_v1(void *address)
{
    return real_cuMemFree(*(CUdeviceptr_v1 *)address);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address);
EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
    return allocation_free(ALLOCATION_POINTER, address, free_pointer, &address);
}

EXPORT CUresult cuMemFree(CUdeviceptr_v1 address);
EXPORT CUresult cuMemFree(CUdeviceptr_v1 address)
{
    return allocation_free(ALLOCATION_POINTER, address, free_pointer_v1, &address);
}

const struct hook memory_hooks[] = {
    HOOK(cuMemAlloc_v2),
    HOOK(cuMemAlloc),
    HOOK(cuMemAllocManaged),
    HOOK(cuMemAllocPitch_v2),
    HOOK(cuMemAllocPitch),
    HOOK(cuMemFree_v2),
    HOOK(cuMemFree),
    HOOKS_END,
};
