/* Plain and managed device memory. */
#include "cuda_shim.h"

/* --- taking: room first, then the driver, then the record of it --- */

static void hold(int device, uint64_t address, uint64_t bytes)
{
    held_add(&(struct held){.kind = HELD_POINTER,
                            .key = address,
                            .device = device,
                            .bytes = bytes,
                            .context = current_context()});
}

/* What the driver did with the room that was made for it. */
static CUresult finish(CUresult answer, int device, uint64_t address, uint64_t bytes)
{
    if (answer)
        ledger_release(device, bytes);
    else
        hold(device, address, bytes);
    return answer;
}

WRAP(cuMemAlloc_v2, CUdeviceptr *address, size_t bytes)
{
    int device = current_device();
    if (device == DEVICE_NONE)
        return real_cuMemAlloc_v2(address, bytes);
    CUresult answer = charge(device, bytes);
    if (answer)
        return answer;
    answer = real_cuMemAlloc_v2(address, bytes);
    return finish(answer, device, answer ? 0 : *address, bytes);
}

WRAP(cuMemAlloc, CUdeviceptr_v1 *address, unsigned int bytes)
{
    int device = current_device();
    if (device == DEVICE_NONE)
        return real_cuMemAlloc(address, bytes);
    CUresult answer = charge(device, bytes);
    if (answer)
        return answer;
    answer = real_cuMemAlloc(address, bytes);
    return finish(answer, device, answer ? 0 : *address, bytes);
}

WRAP(cuMemAllocManaged, CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    int device = current_device();
    if (device == DEVICE_NONE)
        return real_cuMemAllocManaged(address, bytes, flags);
    CUresult answer = charge(device, bytes);
    if (answer)
        return answer;
    answer = real_cuMemAllocManaged(address, bytes, flags);
    return finish(answer, device, answer ? 0 : *address, bytes);
}

/* --- rows with a pitch: how long a row is, only the driver knows, and only afterwards --- */

NEEDS(cuMemFree_v2, CUdeviceptr);
NEEDS(cuMemFree, CUdeviceptr_v1);

/* Rows that need not be longer than they are: the least that the driver can take. */
static uint64_t least(size_t width, size_t height)
{
    uint64_t bytes;
    return __builtin_mul_overflow((uint64_t)width, (uint64_t)height, &bytes) ? UINT64_MAX : bytes;
}

WRAP(cuMemAllocPitch_v2, CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
     unsigned int element)
{
    int device = current_device();
    if (device == DEVICE_NONE)
        return real_cuMemAllocPitch_v2(address, pitch, width, height, element);
    uint64_t bytes = least(width, height);
    CUresult answer = charge(device, bytes);
    if (answer)
        return answer;
    answer = real_cuMemAllocPitch_v2(address, pitch, width, height, element);
    if (!answer && charge_adjust(device, bytes, *pitch * height)) {
        real_cuMemFree_v2(*address);
        answer = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (!answer) {
        bytes = *pitch * height;
    }
    return finish(answer, device, answer ? 0 : *address, bytes);
}

WRAP(cuMemAllocPitch, CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width,
     unsigned int height, unsigned int element)
{
    int device = current_device();
    if (device == DEVICE_NONE)
        return real_cuMemAllocPitch(address, pitch, width, height, element);
    uint64_t bytes = least(width, height);
    CUresult answer = charge(device, bytes);
    if (answer)
        return answer;
    answer = real_cuMemAllocPitch(address, pitch, width, height, element);
    if (!answer && charge_adjust(device, bytes, (uint64_t)*pitch * height)) {
        real_cuMemFree(*address);
        answer = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (!answer) {
        bytes = (uint64_t)*pitch * height;
    }
    return finish(answer, device, answer ? 0 : *address, bytes);
}

/* --- freeing --- */

/* The record goes first: once the driver has freed an address, another thread may be given it. */
CUresult held_free(enum held_kind kind, uint64_t key, free_function *real, void *arguments)
{
    struct held entry;
    int had = held_take(kind, key, &entry);
    CUresult answer = real(arguments);
    if (had && answer)
        held_add(&entry);
    else if (had && entry.owner)
        pool_freed(&entry);
    else if (had)
        ledger_release(entry.device, entry.bytes);
    return answer;
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
    return held_free(HELD_POINTER, address, free_pointer, &address);
}

EXPORT CUresult cuMemFree(CUdeviceptr_v1 address);
EXPORT CUresult cuMemFree(CUdeviceptr_v1 address)
{
    return held_free(HELD_POINTER, address, free_pointer_v1, &address);
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
