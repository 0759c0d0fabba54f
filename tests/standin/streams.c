/* Streams: each has an order of its own (a lane of time.c). The default stream of a context, which is the
 * legacy one, and its blocking streams wait for each other, as CUDA says; each thread's own default stream
 * is a blocking one. */
#define _GNU_SOURCE
#include "stream.h"

#include <stdlib.h>

struct stream *streams;
pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;

void streams_forget(void)
{
    pthread_mutex_init(&streams_lock, NULL);
    streams = NULL;
}

/* --- which stream ---------------------------------------------------------------------------------- */

struct stream *stream_add(struct context *context, unsigned flags, int priority)
{
    struct stream *made = calloc(1, sizeof *made);
    if (!made)
        abort(); /* a stand-in for tests: no way out is needed */
    *made = (struct stream){.context = context, .flags = flags, .priority = priority,
                            .lane = lane_open(device_gpu(context->device), priority),
                            .next = streams};
    return streams = made;
}

static struct stream *default_stream(struct context *context, bool threaded)
{
    pthread_mutex_lock(&streams_lock);
    struct stream *found = streams;
    while (found && !(found->context == context && (threaded ? found->threaded : found->legacy) &&
                      (!threaded || pthread_equal(found->thread, pthread_self()))))
        found = found->next;
    if (!found) {
        found = stream_add(context, 0, 0);
        found->legacy = !threaded;
        found->threaded = threaded;
        found->thread = pthread_self();
    }
    pthread_mutex_unlock(&streams_lock);
    return found;
}

static struct stream *stream_of(CUstream stream, struct context *context)
{
    if (is_handle(stream))
        return stream;
    return default_stream(context, stream == STREAM_PER_THREAD);
}

CUresult stream_find(CUstream stream, struct stream **found)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (!result)
        *found = stream_of(stream, context);
    return result;
}

CUresult stream_context(CUstream stream, struct context **found)
{
    struct stream *known;
    CUresult result = stream_find(stream, &known);
    if (!result)
        *found = known->context;
    return result;
}

CUgraph stream_capture(CUstream stream)
{
    return is_handle(stream) ? stream->graph : NULL;
}

/* --- order between streams ------------------------------------------------------------------------- */

static bool is_blocking(const struct stream *stream)
{
    return !(stream->flags & NON_BLOCKING);
}

/* Whether work in `stream` begins only after what is in `other`. */
static bool comes_after(const struct stream *stream, const struct stream *other)
{
    return other != stream && other->context == stream->context &&
           (stream->legacy ? is_blocking(other) : other->legacy && is_blocking(stream));
}

int places_before(const struct stream *stream, const struct context *context, struct place *found)
{
    int count = 0;
    pthread_mutex_lock(&streams_lock);
    for (struct stream *other = streams; other && count < MOST_STREAMS; other = other->next)
        if (stream ? comes_after(stream, other) : other->context == context)
            found[count++] = (struct place){other->lane, time_last(other->lane)};
    pthread_mutex_unlock(&streams_lock);
    return count;
}

static void wait_for_others(struct stream *stream)
{
    struct place places[MOST_STREAMS];
    for (int i = places_before(stream, NULL, places) - 1; i >= 0; i--)
        time_give_wait(stream->lane, places[i].lane, places[i].number);
}

/* Blocks of a kernel as the multiprocessors that it has at once. */
static unsigned width(const struct context *context, uint64_t blocks)
{
    const unsigned most = context->green ? context->multiprocessors : STANDIN_MULTIPROCESSORS;
    return blocks < most ? (unsigned)blocks : most;
}

CUresult stream_run(CUstream stream, uint64_t ns, uint64_t blocks)
{
    struct context *current;
    CUresult result = need_context(&current);
    if (result)
        return result;
    struct stream *found = stream_of(stream, current);
    if (found->context != current && !found->context->green)
        return CUDA_ERROR_INVALID_HANDLE;
    wait_for_others(found);
    time_give(found->lane, ns, width(found->context, blocks), NULL);
    return CUDA_SUCCESS;
}

CUresult stream_launch(CUstream stream, uint64_t ns, uint64_t blocks)
{
    CUgraph graph = stream_capture(stream);
    if (!graph)
        return stream_run(stream, ns, blocks);
    struct context *context;
    CUresult result = need_context(&context);
    return result ? result : capture_kernel(graph, ns, blocks);
}

struct lane *stream_event(CUstream stream, struct stamp *stamp, uint64_t *number)
{
    struct stream *found = stream_of(stream, context_current());
    wait_for_others(found);
    *number = time_give(found->lane, 0, 0, stamp);
    return found->lane;
}

struct lane *context_event(struct context *context, struct stamp *stamp, uint64_t *number)
{
    struct place places[MOST_STREAMS];
    struct stream *found = default_stream(context, false);
    for (int i = places_before(NULL, context, places) - 1; i >= 0; i--)
        time_give_wait(found->lane, places[i].lane, places[i].number);
    *number = time_give(found->lane, 0, 0, stamp);
    return found->lane;
}

void stream_wait(CUstream stream, struct lane *lane, uint64_t number)
{
    struct stream *found = stream_of(stream, context_current());
    wait_for_others(found);
    time_give_wait(found->lane, lane, number);
}

/* Streams that are made later do not wait. */
void context_wait(struct context *context, struct lane *lane, uint64_t number)
{
    struct place places[MOST_STREAMS];
    default_stream(context, false);
    for (int i = places_before(NULL, context, places) - 1; i >= 0; i--)
        time_give_wait(places[i].lane, lane, number);
}
