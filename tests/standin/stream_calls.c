/* The functions of CUDA about streams. */
#define _GNU_SOURCE
#include "stream.h"

#include <stdlib.h>

CUresult stream_make(CUstream *stream, struct context *context, unsigned flags, int priority)
{
    pthread_mutex_lock(&streams_lock);
    *stream = stream_add(context, flags, priority);
    pthread_mutex_unlock(&streams_lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (!result && flags & ~NON_BLOCKING)
        result = CUDA_ERROR_INVALID_VALUE;
    return result ? result : stream_make(stream, context, flags, priority);
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

/* What is in it still runs. */
EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    if (!is_handle(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&streams_lock);
    struct stream **place = &streams;
    while (*place && *place != stream)
        place = &(*place)->next;
    if (*place)
        *place = stream->next;
    pthread_mutex_unlock(&streams_lock);
    lane_close(stream->lane);
    free(stream);
    return CUDA_SUCCESS;
}
ALIAS(cuStreamDestroy, cuStreamDestroy_v2);

/* A stream whose work is asked about, and what else has to be done: with the legacy default stream, the work of all
 * blocking ones. */
static CUresult find_work(CUstream stream, struct stream **found, struct place *places, int *count)
{
    CUresult result = stream_find(stream, found);
    if (result)
        return result;
    if ((*found)->graph)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    *count = (*found)->legacy ? places_before(*found, NULL, places) : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    struct place places[MOST_STREAMS];
    struct stream *found;
    int count;
    CUresult result = find_work(stream, &found, places, &count);
    if (result)
        return result;
    for (int i = count - 1; i >= 0; i--)
        time_wait(places[i].lane, places[i].number);
    time_wait(found->lane, time_last(found->lane));
    pthread_mutex_lock(&driver_lock);
    pools_synchronise(device_gpu(found->context->device));
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}
PTSZ_OF(cuStreamSynchronize, (CUstream stream), (per_thread(stream)))

EXPORT CUresult cuStreamQuery(CUstream stream)
{
    struct place places[MOST_STREAMS];
    struct stream *found;
    int count;
    CUresult result = find_work(stream, &found, places, &count);
    if (result)
        return result;
    for (int i = count - 1; i >= 0; i--)
        if (!time_done(places[i].lane, places[i].number))
            return CUDA_ERROR_NOT_READY;
    return time_done(found->lane, time_last(found->lane)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
PTSZ_OF(cuStreamQuery, (CUstream stream), (per_thread(stream)))

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *found)
{
    return stream_context(stream, found);
}
PTSZ_OF(cuStreamGetCtx, (CUstream stream, CUcontext *found), (per_thread(stream), found))

EXPORT CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    *flags = is_handle(stream) ? stream->flags : 0;
    return need_init();
}
PTSZ_OF(cuStreamGetFlags, (CUstream stream, unsigned *flags), (stream, flags))

EXPORT CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    *priority = is_handle(stream) ? stream->priority : 0;
    return need_init();
}
PTSZ_OF(cuStreamGetPriority, (CUstream stream, int *priority), (stream, priority))

static CUresult synchronise(struct context *context)
{
    struct place places[MOST_STREAMS];
    for (int i = places_before(NULL, context, places) - 1; i >= 0; i--)
        time_wait(places[i].lane, places[i].number);
    pthread_mutex_lock(&driver_lock);
    pools_synchronise(device_gpu(context->device));
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    struct context *context;
    CUresult result = need_context(&context);
    return result ? result : synchronise(context);
}

/* Since CUDA 13: of a context that need not be the current one. */
EXPORT CUresult cuCtxSynchronize_v2(CUcontext context)
{
    if (!context)
        return cuCtxSynchronize();
    return context->live ? synchronise(context) : CUDA_ERROR_INVALID_CONTEXT;
}
