/* Streams. All work of a process for a GPU runs in the order in which it was given, so a
 * stream only remembers the number of its last piece. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>

struct stream {
    struct context *context;
    unsigned flags;
    int priority;
    uint64_t last;
    CUgraph graph; /* of a capture under way */
    uint64_t capture; /* its number */
};

static struct stream standard[STANDIN_GPUS];

void streams_forget(void)
{
    memset(standard, 0, sizeof standard);
}

/* NULL and the two small numbers mean the default stream, here one and the same for all threads. */
static struct stream *stream_of(CUstream stream, struct context *context)
{
    if ((uintptr_t)stream > 2)
        return stream;
    struct stream *found = &standard[context->device];
    found->context = context;
    return found;
}

CUgraph stream_capture(CUstream stream)
{
    return (uintptr_t)stream > 2 ? stream->graph : NULL;
}

void stream_run(CUstream stream, struct context *context, uint64_t ns)
{
    stream_of(stream, context)->last = time_give(device_gpu(context->device), ns, NULL);
}

CUresult stream_launch(CUstream stream, uint64_t ns)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    CUgraph graph = stream_capture(stream);
    if (graph)
        return capture_kernel(graph, ns);
    stream_run(stream, context, ns);
    return CUDA_SUCCESS;
}

/* --- streams --------------------------------------------------------------------------------------- */

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    struct stream *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct stream){.context = context, .flags = flags, .priority = priority};
    *stream = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    if ((uintptr_t)stream <= 2)
        return CUDA_ERROR_INVALID_HANDLE;
    free(stream);
    return CUDA_SUCCESS;
}
ALIAS(cuStreamDestroy, cuStreamDestroy_v2);

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    if (stream_capture(stream))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    struct stream *found = stream_of(stream, context);
    const int gpu = device_gpu(found->context->device);
    time_wait(gpu, found->last);
    pthread_mutex_lock(&driver_lock);
    pools_synchronise(gpu);
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}
PTSZ(cuStreamSynchronize);

EXPORT CUresult cuStreamQuery(CUstream stream)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    if (stream_capture(stream))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    struct stream *found = stream_of(stream, context);
    return time_done(device_gpu(found->context->device), found->last) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_NOT_READY;
}
PTSZ(cuStreamQuery);

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *found)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (!result)
        *found = stream_of(stream, context)->context;
    return result;
}
PTSZ(cuStreamGetCtx);

EXPORT CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    *flags = (uintptr_t)stream > 2 ? stream->flags : 0;
    return need_init();
}
PTSZ(cuStreamGetFlags);

EXPORT CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    *priority = (uintptr_t)stream > 2 ? stream->priority : 0;
    return need_init();
}
PTSZ(cuStreamGetPriority);

/* What was recorded before is done before, as all work is in one order. */
EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    return need_init();
}
PTSZ(cuStreamWaitEvent);

EXPORT CUresult cuCtxSynchronize(void)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    const int gpu = device_gpu(context->device);
    time_wait(gpu, time_last(gpu));
    pthread_mutex_lock(&driver_lock);
    pools_synchronise(gpu);
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}

/* Since CUDA 13: of a context that need not be the current one. */
EXPORT CUresult cuCtxSynchronize_v2(CUcontext context)
{
    if (!context)
        return cuCtxSynchronize();
    CUresult result = cuCtxPushCurrent_v2(context);
    if (!result)
        result = cuCtxSynchronize();
    cuCtxPopCurrent_v2(NULL);
    return result;
}

/* --- capture --------------------------------------------------------------------------------------- */

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    static uint64_t captures;
    (void)mode;
    if ((uintptr_t)stream <= 2 || stream->graph)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    stream->graph = graph_make();
    stream->capture = ++captures;
    return CUDA_SUCCESS;
}
PTSZ(cuStreamBeginCapture_v2);

EXPORT CUresult cuStreamBeginCapture(CUstream stream)
{
    return cuStreamBeginCapture_v2(stream, 0);
}
PTSZ(cuStreamBeginCapture);

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    if (!stream_capture(stream))
        return CUDA_ERROR_INVALID_VALUE;
    *graph = stream->graph;
    stream->graph = NULL;
    return CUDA_SUCCESS;
}
PTSZ(cuStreamEndCapture);

EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    *status = stream_capture(stream) ? 1 : 0;
    return need_init();
}
PTSZ(cuStreamIsCapturing);

EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *number,
                                          CUgraph *graph, const CUgraphNode **after, size_t *count)
{
    CUgraph captured = stream_capture(stream);
    *status = captured ? 1 : 0;
    if (captured && number)
        *number = stream->capture;
    if (captured && graph)
        *graph = captured;
    if (after)
        *after = NULL;
    if (count)
        *count = 0;
    return need_init();
}
PTSZ(cuStreamGetCaptureInfo_v2);
