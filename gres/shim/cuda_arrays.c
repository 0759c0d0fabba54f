/* Arrays and mipmapped arrays. Their layout is internal to the driver, so the size of their elements is
 * charged. Sparse ones, and those with deferred mapping, get memory through cuda_vmm.c. */
#include "cuda_arrays.h"

#include "cuda_blocks.h"
#include "cuda_charge.h"
#include "cuda_device.h"
#include "cuda_memory.h"
#include "cuda_vmm.h"
#include "ledger.h"
#include "trace.h"

/* Bits of one element's channel by CUarray_format; blocks and packed pixels come below. */
static unsigned int channel_bits(int format)
{
    switch (format) {
    case 0x01: /* UNSIGNED_INT8 */
    case 0x08: /* SIGNED_INT8 */
        return 8;
    case 0x02: /* UNSIGNED_INT16 */
    case 0x09: /* SIGNED_INT16 */
    case 0x10: /* HALF */
        return 16;
    default: /* 32 bits: UNSIGNED_INT32, SIGNED_INT32, FLOAT; nothing has more */
        return 32;
    }
}

/* Bits of one element, where the format alone determines it; 0 where it depends on the channels. */
static unsigned int packed_bits(int format)
{
    static const unsigned char normalised[] = {8, 16, 32, 16, 32, 64};
    if (format >= 0xc0 && format <= 0xcb) /* UNORM_INT8X1 … SNORM_INT16X4 */
        return normalised[(format - 0xc0) % 6];
    if ((format >= 0x91 && format <= 0x92) || (format >= 0x97 && format <= 0x98))
        return 4; /* BC1 and BC4: 8 bytes for 16 elements */
    if (format >= 0x93 && format <= 0x9e)
        return 8; /* the other block formats: 16 bytes */
    if (format == 0xb0)
        return 12; /* NV12 */
    return 0;
}

static uint64_t array_extent(uint64_t length, unsigned int level)
{
    length >>= level;
    return length ? length : 1;
}

static uint64_t array_times(uint64_t one, uint64_t other)
{
    uint64_t product;
    return __builtin_mul_overflow(one, other, &product) ? UINT64_MAX : product;
}

static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned int level)
{
    int layers = (wanted->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    uint64_t elements = array_times(array_extent(wanted->Width, level), array_extent(wanted->Height, level));
    elements = array_times(elements, array_extent(wanted->Depth, layers ? 0 : level));
    unsigned int bits = packed_bits(wanted->Format);
    if (!bits)
        bits = channel_bits(wanted->Format) * (wanted->NumChannels ? wanted->NumChannels : 1);
    return bits % 8 ? array_times(elements, bits) / 8 : array_times(elements, bits / 8);
}

static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned int levels)
{
    uint64_t sum = 0;
    if (!wanted || wanted->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0;
    if (levels > 32) /* more than repeated halving can give */
        levels = 32;
    for (unsigned int level = 0; level < levels; level++)
        if (__builtin_add_overflow(sum, level_bytes(wanted, level), &sum))
            return UINT64_MAX;
    return sum;
}

typedef CUresult create_function(void *array, const void *wanted, unsigned int levels);

static CUresult array_create(const char *function, enum allocation_kind kind, void **array,
                             create_function *real, const void *asked,
                             const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned int levels)
{
    int device = current_device();
    uint64_t bytes = block_estimate(array_bytes(wanted, levels));
    struct charge_retry retry = {0};
    if (device == DEVICE_NONE || !bytes || !array)
        return real(array, asked, levels);
    CUresult result = charge(device, bytes);
    if (result) {
        trace_refused(function, bytes);
        return result;
    }
    do
        result = real(array, asked, levels);
    while (charge_again(result, &retry));
    if (result) {
        ledger_release(device, bytes);
        return result;
    }
    allocation_insert(&(struct allocation){.kind = kind,
                                           .key = (uintptr_t)*array,
                                           .device = device,
                                           .bytes = bytes,
                                           .context = current_context()});
    return result;
}

/* --- the four functions that create an array, and the one for mipmapped arrays --- */

/* As WRAP, and `call_name` is the driver's function in the form that `array_create` calls. */
#define CREATE(name, handle, descriptor)                                                            \
    static CUresult (*real_##name)(handle * array, const descriptor *wanted);                       \
    static CUresult call_##name(void *array, const void *wanted, unsigned int levels)               \
    {                                                                                               \
        (void)levels;                                                                               \
        return real_##name(array, wanted);                                                          \
    }                                                                                               \
    EXPORT CUresult name(handle *array, const descriptor *asked);                                   \
    EXPORT CUresult name(handle *array, const descriptor *asked)

CREATE(cuArray3DCreate_v2, CUarray, CUDA_ARRAY3D_DESCRIPTOR)
{
    return array_create(__func__, ALLOCATION_ARRAY, (void **)array, call_cuArray3DCreate_v2, asked,
                        asked, 1);
}

CREATE(cuArray3DCreate, CUarray, CUDA_ARRAY3D_DESCRIPTOR_v1)
{
    if (!asked) /* the driver returns the error */
        return real_cuArray3DCreate(array, asked);
    CUDA_ARRAY3D_DESCRIPTOR wanted = {.Width = asked->Width,
                                      .Height = asked->Height,
                                      .Depth = asked->Depth,
                                      .Format = asked->Format,
                                      .NumChannels = asked->NumChannels,
                                      .Flags = asked->Flags};
    return array_create(__func__, ALLOCATION_ARRAY, (void **)array, call_cuArray3DCreate, asked,
                        &wanted, 1);
}

CREATE(cuArrayCreate_v2, CUarray, CUDA_ARRAY_DESCRIPTOR)
{
    if (!asked) /* the driver returns the error */
        return real_cuArrayCreate_v2(array, asked);
    CUDA_ARRAY3D_DESCRIPTOR wanted = {.Width = asked->Width,
                                      .Height = asked->Height,
                                      .Format = asked->Format,
                                      .NumChannels = asked->NumChannels};
    return array_create(__func__, ALLOCATION_ARRAY, (void **)array, call_cuArrayCreate_v2, asked,
                        &wanted, 1);
}

CREATE(cuArrayCreate, CUarray, CUDA_ARRAY_DESCRIPTOR_v1)
{
    if (!asked) /* the driver returns the error */
        return real_cuArrayCreate(array, asked);
    CUDA_ARRAY3D_DESCRIPTOR wanted = {.Width = asked->Width,
                                      .Height = asked->Height,
                                      .Format = asked->Format,
                                      .NumChannels = asked->NumChannels};
    return array_create(__func__, ALLOCATION_ARRAY, (void **)array, call_cuArrayCreate, asked,
                        &wanted, 1);
}

NEEDS(cuMipmappedArrayCreate, CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned int);

static CUresult call_cuMipmappedArrayCreate(void *array, const void *wanted, unsigned int levels)
{
    return real_cuMipmappedArrayCreate(array, wanted, levels);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
                                       unsigned int levels);
EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
                                       unsigned int levels)
{
    return array_create(__func__, ALLOCATION_MIPMAP, (void **)array, call_cuMipmappedArrayCreate,
                        wanted, wanted, levels);
}

/* --- ends --- */

NEEDS(cuArrayDestroy, CUarray);
NEEDS(cuMipmappedArrayDestroy, CUmipmappedArray);

static CUresult destroy_array(void *array)
{
    return real_cuArrayDestroy(array);
}

static CUresult destroy_mipmap(void *array)
{
    return real_cuMipmappedArrayDestroy(array);
}

static CUresult array_destroy(enum allocation_kind kind, void *array, free_function *real)
{
    CUresult result = allocation_free(kind, (uintptr_t)array, real, array);
    if (!result)
        tiles_end(array);
    return result;
}

EXPORT CUresult cuArrayDestroy(CUarray array);
EXPORT CUresult cuArrayDestroy(CUarray array)
{
    return array_destroy(ALLOCATION_ARRAY, array, destroy_array);
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);
EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    return array_destroy(ALLOCATION_MIPMAP, array, destroy_mipmap);
}

const struct hook array_hooks[] = {
    HOOK(cuArray3DCreate_v2),
    HOOK(cuArray3DCreate),
    HOOK(cuArrayCreate_v2),
    HOOK(cuArrayCreate),
    HOOK(cuMipmappedArrayCreate),
    HOOK(cuArrayDestroy),
    HOOK(cuMipmappedArrayDestroy),
    HOOKS_END,
};
