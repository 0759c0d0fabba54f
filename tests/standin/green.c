/* Green contexts: a part of a GPU's multiprocessors, with streams of their own. A green context takes no memory
 * beside the primary context's. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#define RESOURCE_MULTIPROCESSORS 1
#define LEAST 2 /* multiprocessors of a group, as of the architectures after 7 */
#define CREATE_DEFAULT_STREAM 1u

typedef struct {
    int type;
    unsigned char padding[92];
    struct { unsigned count, least, together; unsigned char rest[36]; } multiprocessors;
} CUdevResource;
_Static_assert(sizeof(CUdevResource) == 144, "as in cuda.h");

typedef struct context *CUgreenCtx;
typedef struct { unsigned count; } *CUdevResourceDesc;

static void fill(CUdevResource *resource, unsigned count)
{
    memset(resource, 0, sizeof *resource);
    resource->type = RESOURCE_MULTIPROCESSORS;
    resource->multiprocessors.count = count;
    resource->multiprocessors.least = resource->multiprocessors.together = LEAST;
}

EXPORT CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, int type)
{
    NEED_DEVICE(device);
    if (type != RESOURCE_MULTIPROCESSORS)
        return CUDA_ERROR_INVALID_VALUE;
    fill(resource, STANDIN_MULTIPROCESSORS);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevResource(CUcontext context, CUdevResource *resource, int type)
{
    if (!context || type != RESOURCE_MULTIPROCESSORS)
        return CUDA_ERROR_INVALID_VALUE;
    fill(resource, context->green ? context->multiprocessors : STANDIN_MULTIPROCESSORS);
    return CUDA_SUCCESS;
}
ALIAS(cuGreenCtxGetDevResource, cuCtxGetDevResource);

/* Groups of `least` multiprocessors, rounded up; without `groups` only how many there can be. */
EXPORT CUresult cuDevSmResourceSplitByCount(CUdevResource *groups, unsigned *number,
                                            const CUdevResource *from, CUdevResource *remaining,
                                            unsigned flags, unsigned least)
{
    (void)flags;
    const unsigned each = least < LEAST ? LEAST : (least + LEAST - 1) / LEAST * LEAST;
    const unsigned most = from->multiprocessors.count / each;
    const unsigned wanted = !groups || *number > most ? most : *number;
    if (!most)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; groups && i < wanted; i++)
        fill(&groups[i], each);
    if (remaining)
        fill(remaining, from->multiprocessors.count - wanted * each);
    *number = wanted;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources,
                                          unsigned number)
{
    CUdevResourceDesc made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < number; i++)
        made->count += resources[i].multiprocessors.count;
    *description = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc description, CUdevice device,
                                 unsigned flags)
{
    CUcontext primary;
    if (flags != CREATE_DEFAULT_STREAM || !description)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuDevicePrimaryCtxRetain(&primary, device);
    if (result)
        return result;
    struct context *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct context){.device = device, .live = true, .green = true,
                             .multiprocessors = description->count, .parent = primary};
    *green = made;
    return CUDA_SUCCESS;
}

/* The structure stays, as in cuCtxDestroy; its streams are no longer to be used. */
EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
    if (!green || !green->green || !green->live)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = cuCtxSynchronize_v2(green);
    green->live = false;
    return result ? result : cuDevicePrimaryCtxRelease_v2(green->device);
}

EXPORT CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
    *context = green;
    return green && green->live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned flags, int priority)
{
    if (!green || !green->live)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (flags != 1) /* only streams that do not wait for the default one */
        return CUDA_ERROR_INVALID_VALUE;
    return stream_make(stream, green, flags, priority);
}

EXPORT CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *green)
{
    struct context *context;
    CUresult result = stream_context(stream, &context);
    if (!result)
        *green = context->green ? context : NULL;
    return result;
}

EXPORT CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
    struct context *found;
    CUresult result = stream_context(stream, &found);
    if (result)
        return result;
    *green = found->green ? found : NULL;
    *context = found->green ? found->parent : found;
    return CUDA_SUCCESS;
}
PTSZ_OF(cuStreamGetCtx_v2, (CUstream stream, CUcontext *context, CUgreenCtx *green),
        (per_thread(stream), context, green))

EXPORT CUresult cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event)
{
    return cuCtxRecordEvent(green, event);
}

EXPORT CUresult cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event)
{
    return cuCtxWaitEvent(green, event);
}
