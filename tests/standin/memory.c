/* Physical memory, and the allocators that give an address at once: linear, host, IPC. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct allocation *allocations;

/* --- the GPU's own memory ------------------------------------------------------------------------ */

/* Tests stop or kill a process between the driver's "yes" and its answer. */
static void pause_for_tests(void)
{
    const char *text = getenv("STANDIN_PAUSE_MS");
    useconds_t ms = 0;
    for (; text && *text >= '0' && *text <= '9'; text++)
        ms = ms * 10 + (useconds_t)(*text - '0');
    if (ms)
        usleep(ms * 1000);
}

CUresult charge(int gpu, uint64_t bytes)
{
    const int slot = state_own_slot();
    if (slot < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct state *shared = state();
    state_lock();
    const uint64_t used = state_used(gpu), all = shared->gpus[gpu].memory;
    const bool fits = used <= all && bytes <= all - used;
    if (fits)
        shared->slots[slot].bytes[gpu] += bytes;
    state_unlock();
    pause_for_tests();
    return fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void discharge(int gpu, uint64_t bytes)
{
    const int slot = state_own_slot();
    state_lock();
    state()->slots[slot].bytes[gpu] -= bytes;
    state_unlock();
}

void figure_add(int gpu, int64_t bytes)
{
    const int slot = state_own_slot();
    state_lock();
    state()->slots[slot].not_told[gpu] -= bytes;
    state_unlock();
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    if (!available || !total)
        return CUDA_ERROR_INVALID_VALUE;
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    const int gpu = device_gpu(context->device);
    state_lock();
    const uint64_t used = state_used(gpu);
    state_unlock();
    *total = state()->gpus[gpu].memory;
    *available = used < *total ? *total - used : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo(unsigned *available, unsigned *total)
{
    if (!available || !total)
        return CUDA_ERROR_INVALID_VALUE;
    size_t free_bytes, all;
    CUresult result = cuMemGetInfo_v2(&free_bytes, &all);
    if (!result) {
        *available = free_bytes > UINT32_MAX ? UINT32_MAX : (unsigned)free_bytes;
        *total = all > UINT32_MAX ? UINT32_MAX : (unsigned)all;
    }
    return result;
}

/* --- what has been allocated --------------------------------------------------------------------- */

static CUdeviceptr next_address = 0x700000000000ull;

CUdeviceptr address_take(uint64_t bytes)
{
    const CUdeviceptr address = next_address;
    next_address += (bytes + 511) / 512 * 512;
    return address;
}

struct allocation *allocation_add(enum kind kind, int gpu, CUdeviceptr address, uint64_t bytes)
{
    struct allocation *made = calloc(1, sizeof *made);
    if (!made)
        abort(); /* a stand-in for tests: no way out is needed */
    *made = (struct allocation){.next = allocations, .context = context_current(), .kind = kind,
                                .gpu = gpu, .address = address, .bytes = bytes};
    return allocations = made;
}

struct allocation *allocation_find(CUdeviceptr address)
{
    struct allocation *found = allocations;
    while (found && !(address >= found->address && address - found->address < found->bytes))
        found = found->next;
    return found;
}

static void release(struct allocation *allocation)
{
    switch (allocation->kind) {
    case MANAGED:
        managed_end(allocation);
        break;
    case LINEAR:
        blocks_give_back(allocation->gpu, allocation->address, allocation->bytes);
        break;
    case HOST:
        free((void *)(uintptr_t)allocation->address);
        break;
    case POOLED:
        pool_give_back(allocation);
        break;
    case GRAPH:
        graph_memory_free(allocation);
        break;
    case IMPORTED: /* somebody else's memory */
        import_end(allocation);
        break;
    }
}

static void allocation_end(struct allocation **place)
{
    struct allocation *ended = *place;
    *place = ended->next;
    release(ended);
    free(ended);
}

CUresult allocation_free(CUdeviceptr address)
{
    struct allocation **place = &allocations;
    while (*place && (*place)->address != address)
        place = &(*place)->next;
    if (!*place)
        return CUDA_ERROR_INVALID_VALUE;
    allocation_end(place);
    return CUDA_SUCCESS;
}

void allocations_end(struct context *context)
{
    struct allocation **place = &allocations;
    while (*place)
        if ((*place)->context == context && (*place)->kind != POOLED)
            allocation_end(place);
        else
            place = &(*place)->next;
}

void allocations_forget(void)
{
    allocations = NULL;
    blocks_forget();
}

/* --- linear memory ------------------------------------------------------------------- */

static CUresult linear(CUdeviceptr *address, uint64_t bytes, bool low)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    const int gpu = device_gpu(context->device);
    pthread_mutex_lock(&driver_lock);
    result = blocks_take(gpu, bytes, low, address);
    if (!result)
        allocation_add(LINEAR, gpu, *address, bytes);
    pthread_mutex_unlock(&driver_lock);
    return result;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr taken;
    CUresult result = linear(&taken, bytes, false);
    if (!result)
        *address = taken;
    return result;
}

EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *address, unsigned bytes)
{
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr taken;
    CUresult result = linear(&taken, bytes, true);
    if (!result)
        *address = (CUdeviceptr_v1)taken;
    return result;
}

/* Rows start at multiples of 512 bytes. */
static size_t row(size_t width)
{
    return (width + 511) / 512 * 512;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                   unsigned element)
{
    if (!address || !pitch)
        return CUDA_ERROR_INVALID_VALUE;
    (void)element;
    CUresult result = cuMemAlloc_v2(address, row(width) * height);
    if (!result)
        *pitch = row(width);
    return result;
}

EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned *pitch, unsigned width,
                                unsigned height, unsigned element)
{
    if (!address || !pitch)
        return CUDA_ERROR_INVALID_VALUE;
    (void)element;
    CUresult result = cuMemAlloc(address, (unsigned)row(width) * height);
    if (!result)
        *pitch = (unsigned)row(width);
    return result;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
    CUresult result = need_init();
    if (result || !address)
        return result;
    pthread_mutex_lock(&driver_lock);
    result = allocation_free(address);
    pthread_mutex_unlock(&driver_lock);
    return result;
}

EXPORT CUresult cuMemFree(CUdeviceptr_v1 address)
{
    return cuMemFree_v2(address);
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    pthread_mutex_lock(&driver_lock);
    struct allocation *found = allocation_find(address);
    if (found && base)
        *base = found->address;
    if (found && bytes)
        *bytes = found->bytes;
    pthread_mutex_unlock(&driver_lock);
    return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address)
{
    pthread_mutex_lock(&driver_lock);
    struct allocation *found = allocation_find(address);
    CUresult result = found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (found && attribute == 1) /* context */
        *(CUcontext *)value = found->context;
    else if (found && attribute == 2) /* type of memory: host or device */
        *(unsigned *)value = found->kind == HOST ? 1 : 2;
    else if (found && attribute == 9) { /* device */
        for (int i = 0; i < device_count(); i++)
            if (device_gpu(i) == found->gpu)
                *(int *)value = i;
    } else if (found)
        result = CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_unlock(&driver_lock);
    return result;
}
