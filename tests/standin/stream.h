/* What the parts of streams share. */
#ifndef STANDIN_STREAM_H
#define STANDIN_STREAM_H

#include "driver.h"

#define NON_BLOCKING 1u

struct stream {
    struct stream *next;
    struct context *context;
    unsigned flags;
    int priority;
    struct lane *lane;
    bool legacy, threaded; /* the two kinds of default streams */
    pthread_t thread;
    CUgraph graph; /* of a capture under way */
    bool origin; /* of the capture; others have joined it */
    uint64_t capture; /* its number */
};

/* All of the process, with the lock. */
extern struct stream *streams;
extern pthread_mutex_t streams_lock;

static inline bool is_handle(CUstream stream)
{
    return stream && stream != STREAM_LEGACY && stream != STREAM_PER_THREAD;
}

/* The stream that is meant while a context is current. */
CUresult stream_find(CUstream stream, struct stream **found);
struct stream *stream_add(struct context *context, unsigned flags, int priority); /* with the lock */

#define MOST_STREAMS 512

struct place {
    struct lane *lane;
    uint64_t number;
};

/* The last pieces of the streams for which this one waits, or (stream NULL) of all of the context. */
int places_before(const struct stream *stream, const struct context *context, struct place *found);

#endif
