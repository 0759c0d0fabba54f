/* Contexts, on a stack for each thread. Each takes memory that no allocator asked for. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>

static struct context primary[STANDIN_GPUS];

#define STACK 32
static __thread struct context *stack[STACK];
static __thread int depth;

void contexts_forget(void)
{
    depth = 0;
    memset(primary, 0, sizeof primary);
}

struct context *context_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUresult need_context(struct context **found)
{
    if (need_init())
        return CUDA_ERROR_NOT_INITIALIZED;
    *found = context_current();
    return *found && (*found)->live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult context_start(struct context *context, int device)
{
    if (state_own_slot() < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = charge(device_gpu(device), STANDIN_CONTEXT);
    if (!result) {
        context->device = device;
        context->live = true;
    }
    return result;
}

static void context_end(struct context *context)
{
    if (!context->live)
        return;
    allocations_end(context);
    discharge(device_gpu(context->device), STANDIN_CONTEXT);
    context->live = false;
    context->references = 0;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *found, CUdevice device)
{
    CUresult result = CUDA_SUCCESS;
    NEED_DEVICE(device);
    pthread_mutex_lock(&driver_lock);
    struct context *context = &primary[device];
    context->primary = true;
    if (!context->live)
        result = context_start(context, device);
    if (!result) {
        context->references++;
        *found = context;
    }
    pthread_mutex_unlock(&driver_lock);
    return result;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    NEED_DEVICE(device);
    if (!primary[device].references)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&driver_lock);
    if (--primary[device].references == 0)
        context_end(&primary[device]);
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}
ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    NEED_DEVICE(device);
    pthread_mutex_lock(&driver_lock);
    context_end(&primary[device]);
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}
ALIAS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    NEED_DEVICE(device);
    *flags = primary[device].flags;
    *active = primary[device].live;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    NEED_DEVICE(device);
    primary[device].flags = flags;
    return CUDA_SUCCESS;
}
ALIAS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    if (need_init())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (depth == STACK)
        return CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}
ALIAS(cuCtxPushCurrent, cuCtxPushCurrent_v2);

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    if (need_init())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context)
        *context = stack[depth];
    return CUDA_SUCCESS;
}
ALIAS(cuCtxPopCurrent, cuCtxPopCurrent_v2);

EXPORT CUresult cuCtxCreate_v2(CUcontext *found, unsigned flags, CUdevice device)
{
    NEED_DEVICE(device);
    struct context *context = calloc(1, sizeof *context);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->flags = flags;
    pthread_mutex_lock(&driver_lock);
    CUresult result = context_start(context, device);
    pthread_mutex_unlock(&driver_lock);
    if (result) {
        free(context);
        return result;
    }
    *found = context;
    return cuCtxPushCurrent_v2(context);
}
ALIAS(cuCtxCreate, cuCtxCreate_v2);

EXPORT CUresult cuCtxCreate_v3(CUcontext *found, void *affinity, int number, unsigned flags,
                               CUdevice device)
{
    (void)affinity, (void)number;
    return cuCtxCreate_v2(found, flags, device);
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *found, void *parameters, unsigned flags, CUdevice device)
{
    (void)parameters;
    return cuCtxCreate_v2(found, flags, device);
}

/* The structure stays: other threads may have the context on their stacks, and find it dead. */
EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
    if (need_init())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!context || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&driver_lock);
    context_end(context);
    pthread_mutex_unlock(&driver_lock);
    if (context_current() == context)
        depth--;
    return CUDA_SUCCESS;
}
ALIAS(cuCtxDestroy, cuCtxDestroy_v2);

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = context_current();
    return need_init();
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    if (need_init())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (depth)
        depth--;
    return context ? cuCtxPushCurrent_v2(context) : CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (!result)
        *device = context->device;
    return result;
}

EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    if (!context)
        return cuCtxGetDevice(device);
    *device = context->device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetFlags(unsigned *flags)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (!result)
        *flags = context->flags;
    return result;
}

EXPORT CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
    (void)context;
    *version = 3020;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetLimit(int limit, size_t value)
{
    struct context *context;
    (void)limit, (void)value;
    return need_context(&context);
}
