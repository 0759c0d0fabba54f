/* Events: when they were recorded, the work before them done. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>

#define CUDA_ERROR_CAPTURED_EVENT 907
#define CUDA_ERROR_CAPTURE_ISOLATION 905
#define EVENT_DISABLE_TIMING 2

struct event {
    struct context *context; /* of its creation: it is recorded in streams of this one only */
    unsigned flags;
    CUgraph captured;
    struct lane *lane; /* NULL before the first record */
    uint64_t number;
    struct stamp *stamp;
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
    made->context = context;
    made->flags = flags;
    *event = made;
    return CUDA_SUCCESS;
}

/* Whoever waits for it goes on to wait. */
EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    stamp_drop(event->stamp);
    free(event);
    return CUDA_SUCCESS;
}
ALIAS(cuEventDestroy, cuEventDestroy_v2);

static struct stamp *new_stamp(CUevent event)
{
    struct stamp *stamp = calloc(1, sizeof *stamp);
    if (!stamp)
        abort();
    stamp->users = 1;
    stamp_drop(event->stamp);
    return event->stamp = stamp;
}

EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    struct context *context;
    (void)flags;
    CUresult result = stream_context(stream, &context);
    if (result)
        return result;
    if (!event || event->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    event->captured = stream_capture(stream);
    if (event->captured)
        return CUDA_SUCCESS;
    event->lane = stream_event(stream, new_stamp(event), &event->number);
    return CUDA_SUCCESS;
}
PTSZ_OF(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
        (event, per_thread(stream), flags))

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return cuEventRecordWithFlags(event, stream, 0);
}
PTSZ_OF(cuEventRecord, (CUevent event, CUstream stream), (event, per_thread(stream)))

/* All of a context's work until now, and from now on. */
EXPORT CUresult cuCtxRecordEvent(CUcontext context, CUevent event)
{
    if (!context || !event || event->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    event->lane = context_event(context, new_stamp(event), &event->number);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxWaitEvent(CUcontext context, CUevent event)
{
    if (!context || !event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->lane)
        context_wait(context, event->lane, event->number);
    return CUDA_SUCCESS;
}

/* Events of other contexts and GPUs are waited for, too. */
EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    struct context *context;
    (void)flags;
    CUresult result = stream_context(stream, &context);
    if (result)
        return result;
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->captured)
        stream_join_capture(stream, event->captured);
    else if (stream_capture(stream))
        return CUDA_ERROR_CAPTURE_ISOLATION;
    else if (event->lane)
        stream_wait(stream, event->lane, event->number);
    return CUDA_SUCCESS;
}
PTSZ_OF(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
        (per_thread(stream), event, flags))

EXPORT CUresult cuEventQuery(CUevent event)
{
    if (event->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    return !event->lane || time_done(event->lane, event->number) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->captured)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (event->lane)
        time_wait(event->lane, event->number);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    if (!from->lane || !to->lane || ((from->flags | to->flags) & EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    if (cuEventQuery(from) || cuEventQuery(to))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)(int64_t)(to->stamp->end - from->stamp->end) / 1e6);
    return CUDA_SUCCESS;
}
ALIAS(cuEventElapsedTime_v2, cuEventElapsedTime);
