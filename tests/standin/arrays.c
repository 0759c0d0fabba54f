/* Arrays and mipmapped arrays: opaque memory, also sparse ones that get theirs by mapping. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>

#define SPARSE 0x40
#define DEFERRED_MAPPING 0x80

struct array {
    int gpu;
    uint64_t bytes; /* that it holds itself; 0 when it is mapped later */
    CUdeviceptr address;
};

static size_t bytes_of_element(int format)
{
    switch (format) {
    case 0x02: case 0x09: case 0x10: /* 16 bits: unsigned, signed, half */
        return 2;
    case 0x03: case 0x0a: case 0x20: /* 32 bits: unsigned, signed, float */
        return 4;
    default:
        return 1;
    }
}

static uint64_t at_least_one(size_t extent)
{
    return extent ? extent : 1;
}

static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned level)
{
    const uint64_t elements = at_least_one(wanted->Width >> level) *
                              at_least_one(wanted->Height >> level) *
                              at_least_one(wanted->Depth >> level);
    return elements * bytes_of_element(wanted->Format) * wanted->NumChannels;
}

static CUresult create(struct array **found, const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned levels)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    if (!wanted->Width || !wanted->NumChannels)
        return CUDA_ERROR_INVALID_VALUE;
    struct array *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->gpu = device_gpu(context->device);
    for (unsigned level = 0; level < levels; level++)
        if (!(wanted->Flags & (SPARSE | DEFERRED_MAPPING)))
            made->bytes += bytes_of(wanted, level);
    pthread_mutex_lock(&driver_lock);
    if (made->bytes)
        result = blocks_take(made->gpu, made->bytes, false, &made->address);
    pthread_mutex_unlock(&driver_lock);
    if (result)
        free(made);
    else
        *found = made;
    return result;
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *wanted)
{
    if (!array || !wanted)
        return CUDA_ERROR_INVALID_VALUE;
    return create(array, wanted, 1);
}

EXPORT CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *wanted)
{
    if (!array || !wanted)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR all = {.Width = wanted->Width, .Height = wanted->Height,
                                         .Format = wanted->Format,
                                         .NumChannels = wanted->NumChannels};
    return create(array, &all, 1);
}

EXPORT CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *wanted)
{
    if (!array || !wanted)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR all = {.Width = wanted->Width, .Height = wanted->Height,
                                         .Format = wanted->Format,
                                         .NumChannels = wanted->NumChannels};
    return create(array, &all, 1);
}

EXPORT CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *wanted)
{
    if (!array || !wanted)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR all = {wanted->Width,  wanted->Height,      wanted->Depth,
                                         wanted->Format, wanted->NumChannels, wanted->Flags};
    return create(array, &all, 1);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *array,
                                       const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned levels)
{
    if (!array || !wanted)
        return CUDA_ERROR_INVALID_VALUE;
    return create(array, wanted, levels);
}

EXPORT CUresult cuArrayDestroy(CUarray array)
{
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&driver_lock);
    if (array->bytes)
        blocks_give_back(array->gpu, array->address, array->bytes);
    pthread_mutex_unlock(&driver_lock);
    free(array);
    return CUDA_SUCCESS;
}
ALIAS(cuMipmappedArrayDestroy, cuArrayDestroy);
