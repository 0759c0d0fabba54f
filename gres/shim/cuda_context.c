/* The ends of contexts, with which their memory is freed, and synchronisation with the GPU, after which
 * pools have released what was freed. */
#include "cuda_context.h"

#include "cuda_allocations.h"
#include "cuda_device.h"
#include "cuda_pools.h"
#include "limiter.h"

typedef struct CUgreenCtx_st *CUgreenContext;

NEEDS(cuDevicePrimaryCtxGetState, CUdevice, unsigned int *flags, int *active);
NEEDS(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice);
NEEDS(cuCtxFromGreenCtx, CUcontext *, CUgreenContext); /* since CUDA 12.4 */

/* --- contexts --- */

static void context_ending(CUcontext context)
{
    CUdevice ordinal;
    if (!context_device(context, &ordinal))
        limiter_forget(ordinal);
}

WRAP(cuCtxDestroy_v2, CUcontext context)
{
    context_ending(context);
    CUresult result = real_cuCtxDestroy_v2(context);
    if (!result)
        allocations_end_context(context);
    return result;
}

WRAP(cuCtxDestroy, CUcontext context)
{
    context_ending(context);
    CUresult result = real_cuCtxDestroy(context);
    if (!result)
        allocations_end_context(context);
    return result;
}

static int primary_active(CUdevice ordinal)
{
    unsigned int flags;
    int active = 0;
    return !real_cuDevicePrimaryCtxGetState(ordinal, &flags, &active) && active;
}

/* Only retaining the primary context gives its handle; `release` undoes that. */
static CUcontext primary_context(CUdevice ordinal, CUresult (*release)(CUdevice))
{
    CUcontext context = NULL;
    if (!primary_active(ordinal) || real_cuDevicePrimaryCtxRetain(&context, ordinal))
        return NULL;
    release(ordinal);
    limiter_forget(ordinal);
    return context;
}

static CUresult primary_end(CUdevice ordinal, CUresult (*real)(CUdevice), CUcontext context)
{
    CUresult result = real(ordinal);
    if (!result && !primary_active(ordinal)) {
        allocations_end_context(context);
        pools_sync();
    }
    return result;
}

WRAP(cuDevicePrimaryCtxRelease_v2, CUdevice ordinal)
{
    CUcontext context = primary_context(ordinal, real_cuDevicePrimaryCtxRelease_v2);
    return primary_end(ordinal, real_cuDevicePrimaryCtxRelease_v2, context);
}

WRAP(cuDevicePrimaryCtxRelease, CUdevice ordinal)
{
    CUcontext context = primary_context(ordinal, real_cuDevicePrimaryCtxRelease);
    return primary_end(ordinal, real_cuDevicePrimaryCtxRelease, context);
}

WRAP(cuDevicePrimaryCtxReset_v2, CUdevice ordinal)
{
    CUcontext context = primary_context(ordinal, real_cuDevicePrimaryCtxRelease_v2);
    return primary_end(ordinal, real_cuDevicePrimaryCtxReset_v2, context);
}

WRAP(cuDevicePrimaryCtxReset, CUdevice ordinal)
{
    CUcontext context = primary_context(ordinal, real_cuDevicePrimaryCtxRelease_v2);
    return primary_end(ordinal, real_cuDevicePrimaryCtxReset, context);
}

/* Green contexts: a part of a GPU's multiprocessors, with streams and events of their own. */
WRAP(cuGreenCtxDestroy, CUgreenContext green)
{
    CUcontext context = NULL;
    if (!real_cuCtxFromGreenCtx(&context, green) && context)
        context_ending(context);
    return real_cuGreenCtxDestroy(green);
}

/* --- streams --- */

WRAP(cuStreamDestroy_v2, CUstream stream)
{
    limiter_end_stream(stream);
    return real_cuStreamDestroy_v2(stream);
}

WRAP(cuStreamDestroy, CUstream stream)
{
    limiter_end_stream(stream);
    return real_cuStreamDestroy(stream);
}

/* --- waiting --- */

/* `stream` NULL: all streams of the current context. */
#define WAIT_FOR(stream, call)                                                                      \
    const int64_t began = limiter_before_wait(stream);                                              \
    CUresult result = (call);                                                                       \
    if (result)                                                                                     \
        limiter_poll();                                                                             \
    else                                                                                            \
        limiter_after_wait(stream, began);                                                                 \
    pools_sync();                                                                                   \
    return result

WRAP(cuCtxSynchronize, void)
{
    WAIT_FOR(NULL, real_cuCtxSynchronize());
}

WRAP(cuCtxSynchronize_v2, CUcontext context) /* since CUDA 13 */
{
    CUresult result = real_cuCtxSynchronize_v2(context);
    limiter_poll();
    pools_sync();
    return result;
}

#define WRAP_STREAM_SYNCHRONIZE(name, null_stream)                                                  \
    WRAP(name, CUstream stream)                                                                     \
    {                                                                                               \
        WAIT_FOR(stream ? (void *)stream : (null_stream), real_##name(stream));                     \
    }
WRAP_STREAM_SYNCHRONIZE(cuStreamSynchronize, STREAM_LEGACY)
WRAP_STREAM_SYNCHRONIZE(cuStreamSynchronize_ptsz, STREAM_PER_THREAD)

WRAP(cuEventSynchronize, void *event)
{
    CUresult result = real_cuEventSynchronize(event);
    limiter_poll();
    pools_sync();
    return result;
}

const struct hook context_hooks[] = {
    NEEDED(cuDevicePrimaryCtxGetState),
    NEEDED(cuDevicePrimaryCtxRetain),
    NEEDED(cuCtxFromGreenCtx),
    HOOK(cuGreenCtxDestroy),
    HOOK(cuStreamDestroy_v2),
    HOOK(cuStreamDestroy),
    HOOK(cuCtxDestroy_v2),
    HOOK(cuCtxDestroy),
    HOOK(cuDevicePrimaryCtxRelease_v2),
    HOOK(cuDevicePrimaryCtxRelease),
    HOOK(cuDevicePrimaryCtxReset_v2),
    HOOK(cuDevicePrimaryCtxReset),
    HOOK(cuCtxSynchronize),
    HOOK(cuCtxSynchronize_v2),
    HOOK(cuStreamSynchronize),
    HOOK(cuStreamSynchronize_ptsz),
    HOOK(cuEventSynchronize),
    HOOKS_END,
};
