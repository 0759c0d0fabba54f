#include "events.h"

#include "real.h"

#include <pthread.h>
#include <stddef.h>

#define NOT_READY 600     /* CUDA_ERROR_NOT_READY */
#define WITH_TIMES 0      /* CU_EVENT_DEFAULT */
#define CAPTURE_RELAXED 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */

static struct {
    int (*create)(void **event, unsigned flags);
    int (*destroy)(void *event);
    int (*record)(void *event, void *stream);
    int (*query)(void *event);
    int (*elapsed)(float *ms, void *start, void *end);
    int (*stream_query)(void *stream);
    int (*is_capturing)(void *stream, int *status);
    int (*capture_mode)(int *mode);
} events_driver;

static void events_load(void)
{
    events_driver.create = real_function("cuEventCreate");
    events_driver.destroy = real_function("cuEventDestroy_v2");
    events_driver.record = real_function("cuEventRecord");
    events_driver.query = real_function("cuEventQuery");
    events_driver.elapsed = real_function("cuEventElapsedTime");
    events_driver.stream_query = real_function("cuStreamQuery");
    events_driver.is_capturing = real_function("cuStreamIsCapturing");              /* CUDA 10.0 */
    events_driver.capture_mode = real_function("cuThreadExchangeStreamCaptureMode"); /* 10.1 */
}

int events_capturing(void *stream)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int status = 0;
    pthread_once(&once, events_load);
    return events_driver.is_capturing && (events_driver.is_capturing(stream, &status) || status);
}

/* While a thread captures in strict mode, the driver treats queries of other streams' events as errors
 * and invalidates the capture. Ours are harmless. */
static int events_relax(void)
{
    int mode = CAPTURE_RELAXED;
    if (events_driver.capture_mode)
        events_driver.capture_mode(&mode);
    return mode;
}

static void events_restore(int mode)
{
    if (events_driver.capture_mode)
        events_driver.capture_mode(&mode);
}

void *events_create(void)
{
    void *event = NULL;
    int mode = events_relax(), failed = events_driver.create(&event, WITH_TIMES);
    events_restore(mode);
    return failed ? NULL : event;
}

void events_destroy(void *event)
{
    if (event)
        events_driver.destroy(event);
}

int events_record(void *event, void *stream)
{
    int mode = events_relax(), failed = events_driver.record(event, stream);
    events_restore(mode);
    return failed;
}

static enum events_state events_query(int (*query)(void *), void *of)
{
    int mode = events_relax(), result = query ? query(of) : -1;
    events_restore(mode);
    return result == NOT_READY ? EVENTS_PENDING : result ? EVENTS_FAILED : EVENTS_DONE;
}

enum events_state events_state(void *event)
{
    return events_query(events_driver.query, event);
}

enum events_state events_stream_state(void *stream)
{
    return events_query(events_driver.stream_query, stream);
}

int64_t events_between(void *start, void *end)
{
    float ms = 0;
    return events_driver.elapsed(&ms, start, end) ? 0 : (int64_t)((double)ms * 1e6);
}
