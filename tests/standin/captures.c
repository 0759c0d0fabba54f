/* A stream that is being captured collects nodes of a graph instead of running. */
#define _GNU_SOURCE
#include "stream.h"

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    static uint64_t captures;
    (void)mode;
    if (!is_handle(stream) || stream->graph)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    stream->graph = graph_make();
    stream->origin = true;
    stream->capture = ++captures;
    return CUDA_SUCCESS;
}
PTSZ(cuStreamBeginCapture_v2);

EXPORT CUresult cuStreamBeginCapture(CUstream stream)
{
    return cuStreamBeginCapture_v2(stream, 0);
}
PTSZ(cuStreamBeginCapture);

/* A stream that waits for an event of a capture belongs to the capture until its end. */
void stream_join_capture(CUstream stream, CUgraph graph)
{
    if (is_handle(stream) && !stream->graph)
        stream->graph = graph;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    if (!stream_capture(stream) || !stream->origin)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = stream->graph;
    stream->origin = false;
    pthread_mutex_lock(&streams_lock);
    for (struct stream *other = streams; other; other = other->next)
        if (other->graph == *graph)
            other->graph = NULL;
    pthread_mutex_unlock(&streams_lock);
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
