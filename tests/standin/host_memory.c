/* The host's memory, of which a GPU has no part. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>

EXPORT CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    struct context *context;
    (void)flags;
    CUresult result = need_context(&context);
    if (result)
        return result;
    *memory = malloc(bytes);
    if (!*memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&driver_lock);
    allocation_add(HOST, device_gpu(context->device), (uintptr_t)*memory, bytes);
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocHost_v2(void **memory, size_t bytes)
{
    return cuMemHostAlloc(memory, bytes, 0);
}

EXPORT CUresult cuMemAllocHost(void **memory, unsigned bytes)
{
    return cuMemHostAlloc(memory, bytes, 0);
}

EXPORT CUresult cuMemFreeHost(void *memory)
{
    pthread_mutex_lock(&driver_lock);
    CUresult result = allocation_free((uintptr_t)memory);
    pthread_mutex_unlock(&driver_lock);
    return result;
}

EXPORT CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    struct context *context;
    (void)memory, (void)bytes, (void)flags;
    return need_context(&context);
}
ALIAS(cuMemHostRegister, cuMemHostRegister_v2);

EXPORT CUresult cuMemHostUnregister(void *memory)
{
    (void)memory;
    return need_init();
}
