/* Which of the slice's GPUs a call is about. */
#include "cuda_device.h"

#include "slice.h"

#include <string.h>

#define MOST 64 /* GPUs of one machine */
#define UNKNOWN (-3)

NEEDS(cuCtxGetDevice, CUdevice *);
NEEDS(cuCtxGetCurrent, CUcontext *);
NEEDS(cuCtxPushCurrent_v2, CUcontext);
NEEDS(cuCtxPopCurrent_v2, CUcontext *);
NEEDS(cuStreamGetCtx, CUstream, CUcontext *);
NEEDS(cuDeviceGetUuid, CUuuid *, CUdevice);
NEEDS(cuDeviceGetUuid_v2, CUuuid *, CUdevice); /* for a MIG device its own */

const struct hook device_hooks[] = {
    NEEDED(cuCtxGetDevice),
    NEEDED(cuCtxGetCurrent),
    NEEDED(cuCtxPushCurrent_v2),
    NEEDED(cuCtxPopCurrent_v2),
    NEEDED(cuStreamGetCtx),
    NEEDED(cuDeviceGetUuid),
    NEEDED(cuDeviceGetUuid_v2),
    HOOKS_END,
};

static int device_find(const CUuuid *uuid, const char *prefix)
{
    static const char digits[] = "0123456789abcdef";
    char text[48];
    char *end = stpcpy(text, prefix);
    for (int index = 0; index < 16; index++) {
        if (index == 4 || index == 6 || index == 8 || index == 10)
            *end++ = '-';
        *end++ = digits[(uuid->bytes[index] >> 4) & 15];
        *end++ = digits[uuid->bytes[index] & 15];
    }
    *end = 0;
    return slice_find(text);
}

int device_of(CUdevice ordinal)
{
    static int known[MOST]; /* index + 1; 0: not queried yet. Ordinals never change their GPU. */
    if (ordinal < 0 || ordinal >= MOST)
        return DEVICE_FOREIGN;
    int found = __atomic_load_n(&known[ordinal], __ATOMIC_RELAXED);
    if (found)
        return found - 1;
    CUuuid uuid;
    if (real_cuDeviceGetUuid_v2(&uuid, ordinal) && real_cuDeviceGetUuid(&uuid, ordinal))
        return DEVICE_FOREIGN;
    int index = device_find(&uuid, "GPU-");
    if (index < 0)
        index = device_find(&uuid, "MIG-");
    if (index < 0)
        return DEVICE_FOREIGN;
    __atomic_store_n(&known[ordinal], index + 1, __ATOMIC_RELAXED);
    return index;
}

int current_device(void)
{
    CUdevice ordinal;
    if (real_cuCtxGetDevice(&ordinal))
        return DEVICE_NONE;
    return device_of(ordinal);
}

CUcontext current_context(void)
{
    CUcontext context = NULL;
    return real_cuCtxGetCurrent(&context) ? NULL : context;
}

CUresult context_device(CUcontext context, CUdevice *ordinal)
{
    CUcontext popped;
    if (context == current_context())
        return real_cuCtxGetDevice(ordinal);
    CUresult result = real_cuCtxPushCurrent_v2(context);
    if (result)
        return result;
    result = real_cuCtxGetDevice(ordinal);
    real_cuCtxPopCurrent_v2(&popped);
    return result;
}

/* A stream may belong to another context than the current one. */
CUresult stream_device(CUstream stream, CUdevice *ordinal)
{
    CUcontext context;
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return real_cuCtxGetDevice(ordinal);
    CUresult result = real_cuStreamGetCtx(stream, &context);
    return result ? result : context_device(context, ordinal);
}
