/* A driver that takes null pointers where a real one might: it fills in the other ones and succeeds. */
#include "cuda.h"

#define BOTH(name, one, other)                                                                      \
    EXPORT CUresult name(one *first, other *second);                                                \
    EXPORT CUresult name(one *first, other *second)                                                 \
    {                                                                                               \
        if (first)                                                                                  \
            *first = (one)(1u << 30);                                                               \
        if (second)                                                                                 \
            *second = (other)(1u << 30);                                                            \
        return CUDA_SUCCESS;                                                                        \
    }
BOTH(cuMemGetInfo_v2, size_t, size_t)
BOTH(cuMemGetInfo, unsigned, unsigned)

#define ONE(name, type)                                                                             \
    EXPORT CUresult name(type *bytes, int device);                                                  \
    EXPORT CUresult name(type *bytes, int device)                                                   \
    {                                                                                               \
        if (bytes)                                                                                  \
            *bytes = (type)(device + (1u << 30));                                                   \
        return CUDA_SUCCESS;                                                                        \
    }
ONE(cuDeviceTotalMem_v2, size_t)
ONE(cuDeviceTotalMem, unsigned)

#define SUCCEEDS(name, ...)                                                                         \
    EXPORT CUresult name(__VA_ARGS__);                                                              \
    EXPORT CUresult name(__VA_ARGS__) { return CUDA_SUCCESS; }
SUCCEEDS(cuMemAlloc_v2, void)
SUCCEEDS(cuMemAllocManaged, void)
SUCCEEDS(cuMemAllocPitch_v2, void)
SUCCEEDS(cuArrayCreate_v2, void)
SUCCEEDS(cuArray3DCreate_v2, void)
SUCCEEDS(cuMipmappedArrayCreate, void)
SUCCEEDS(cuMemPoolCreate, void)
SUCCEEDS(cuMemGetMemPool, void)
SUCCEEDS(cuMemCreate, void)
SUCCEEDS(cuMemRetainAllocationHandle, void)
SUCCEEDS(cuMemMapArrayAsync, void)
SUCCEEDS(cuMemAllocAsync, void)
SUCCEEDS(cuGraphInstantiateWithFlags, void)
SUCCEEDS(cuGraphLaunch, void)
SUCCEEDS(cuLaunchKernelEx, void)
SUCCEEDS(cuGetProcAddress_v2, void)
