/* Events: when they were recorded, the work before them done. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>

#define CUDA_ERROR_CAPTURED_EVENT 907
#define EVENT_DISABLE_TIMING 2

struct event {
    int gpu;
    unsigned flags;
    bool recorded, captured;
    uint64_t number, end;
};

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    struct event *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->gpu = device_gpu(context->device);
    made->flags = flags;
    *event = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    time_wait(event->gpu, event->number); /* the queue writes into it */
    free(event);
    return CUDA_SUCCESS;
}
ALIAS(cuEventDestroy, cuEventDestroy_v2);

EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    struct context *context;
    (void)flags;
    CUresult result = need_context(&context);
    if (result)
        return result;
    event->captured = stream_capture(stream) != NULL;
    if (event->captured)
        return CUDA_SUCCESS;
    event->recorded = true;
    event->number = time_give(event->gpu, 0, &event->end);
    return CUDA_SUCCESS;
}
PTSZ(cuEventRecordWithFlags);

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return cuEventRecordWithFlags(event, stream, 0);
}
PTSZ(cuEventRecord);

EXPORT CUresult cuEventQuery(CUevent event)
{
    if (event->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    return time_done(event->gpu, event->number) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    time_wait(event->gpu, event->number);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    if (!from->recorded || !to->recorded || ((from->flags | to->flags) & EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    if (cuEventQuery(from) || cuEventQuery(to))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)(int64_t)(to->end - from->end) / 1e6);
    return CUDA_SUCCESS;
}
ALIAS(cuEventElapsedTime_v2, cuEventElapsedTime);
