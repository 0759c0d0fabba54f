/* Every wrapped function with a null pointer for each of its pointers, one line each: NAME RESULT. Each call is
 * in a process of its own, so that one that crashes is seen: its result is then `signal`.
 *   null_arguments /path/of/libcuda.so.1 */
#define _GNU_SOURCE
#include "cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *library;

#define CU(name, ...) ((CUresult(*)())dlsym(library, #name))(__VA_ARGS__)
#define NONE ((void *)0)
#define BYTES ((size_t)1 << 20)

/* The context is made in the child: a real driver's does not survive fork(). */
static void begin(void)
{
    CUcontext context;
    CU(cuInit, 0u);
    CU(cuDevicePrimaryCtxRetain, &context, 0);
    CU(cuCtxSetCurrent, context);
}

static int result_of(pid_t child)
{
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* An exit code has 8 bits, which are enough to tell these errors apart. */
#define TRY(name, ...)                                                                              \
    do {                                                                                            \
        fflush(stdout);                                                                             \
        pid_t child = fork();                                                                       \
        if (!child) {                                                                               \
            begin();                                                                                \
            _exit(CU(name, __VA_ARGS__) & 255);                                                     \
        }                                                                                           \
        int result = result_of(child);                                                              \
        printf(result < 0 ? "%s signal\n" : "%s %d\n", #name "(" #__VA_ARGS__ ")", result);         \
    } while (0)

static CUdeviceptr address;
static size_t size;
static unsigned int small;
static void *pointer;
static int status;
static CUmemLocation place = {LOCATION_DEVICE, 0};
static const CUmemPoolProps pool_on_gpu = {.allocType = 1, .location = {LOCATION_DEVICE, 0}};
static const CUmemAllocationProp on_gpu = {.type = 1, .location = {LOCATION_DEVICE, 0}};
static const CUDA_ARRAY_DESCRIPTOR array = {1024, 256, 0x20, 1};
static const CUDA_ARRAY_DESCRIPTOR_v1 array_v1 = {1024, 256, 0x20, 1};
static const CUDA_ARRAY3D_DESCRIPTOR array3d = {1024, 32, 8, 0x01, 4, 0};
static const CUDA_ARRAY3D_DESCRIPTOR_v1 array3d_v1 = {1024, 32, 8, 0x01, 4, 0};

static void memory(void)
{
    TRY(cuMemAlloc_v2, NONE, BYTES);
    TRY(cuMemAlloc, NONE, (unsigned)BYTES);
    TRY(cuMemAllocManaged, NONE, BYTES, 1u);
    TRY(cuMemAllocPitch_v2, NONE, &size, BYTES, (size_t)1, 4u);
    TRY(cuMemAllocPitch_v2, &address, NONE, BYTES, (size_t)1, 4u);
    TRY(cuMemAllocPitch, NONE, &small, (unsigned)BYTES, 1u, 4u);
    TRY(cuMemAllocPitch, &small, NONE, (unsigned)BYTES, 1u, 4u);
    TRY(cuMemFree_v2, (CUdeviceptr)0);
    TRY(cuMemFree, 0u);
    TRY(cuMemGetInfo_v2, NONE, &size);
    TRY(cuMemGetInfo_v2, &size, NONE);
    TRY(cuMemGetInfo, NONE, &small);
    TRY(cuMemGetInfo, &small, NONE);
    TRY(cuDeviceTotalMem_v2, NONE, 0);
    TRY(cuDeviceTotalMem, NONE, 0);
}

static void arrays(void)
{
    TRY(cuArrayCreate_v2, NONE, &array);
    TRY(cuArrayCreate_v2, &pointer, NONE);
    TRY(cuArrayCreate, NONE, &array_v1);
    TRY(cuArrayCreate, &pointer, NONE);
    TRY(cuArray3DCreate_v2, NONE, &array3d);
    TRY(cuArray3DCreate_v2, &pointer, NONE);
    TRY(cuArray3DCreate, NONE, &array3d_v1);
    TRY(cuArray3DCreate, &pointer, NONE);
    TRY(cuMipmappedArrayCreate, NONE, &array3d, 2u);
    TRY(cuMipmappedArrayCreate, &pointer, NONE, 2u);
    TRY(cuArrayDestroy, NONE);
    TRY(cuMipmappedArrayDestroy, NONE);
}

static void pools(void)
{
    TRY(cuMemPoolCreate, NONE, &pool_on_gpu);
    TRY(cuMemPoolCreate, &pointer, NONE);
    TRY(cuMemPoolDestroy, NONE);
    TRY(cuMemPoolTrimTo, NONE, (size_t)0);
    TRY(cuMemPoolImportFromShareableHandle, NONE, NONE, 1, 0ull);
    TRY(cuMemGetDefaultMemPool, NONE, &place, 1);
    TRY(cuMemGetDefaultMemPool, &pointer, NONE, 1);
    TRY(cuMemGetMemPool, NONE, &place, 1);
    TRY(cuMemGetMemPool, &pointer, NONE, 1);
    TRY(cuMemAllocAsync, NONE, BYTES, NONE);
    TRY(cuMemAllocAsync_ptsz, NONE, BYTES, NONE);
    TRY(cuMemAllocFromPoolAsync, &address, BYTES, NONE, NONE);
    TRY(cuMemAllocFromPoolAsync_ptsz, &address, BYTES, NONE, NONE);
    TRY(cuMemFreeAsync, (CUdeviceptr)0, NONE);
    TRY(cuMemFreeAsync_ptsz, (CUdeviceptr)0, NONE);
}

static void physical(void)
{
    TRY(cuMemCreate, NONE, 2 * BYTES, &on_gpu, 0ull);
    TRY(cuMemCreate, &address, 2 * BYTES, NONE, 0ull);
    TRY(cuMemRelease, 0ull);
    TRY(cuMemMap, (CUdeviceptr)0, 2 * BYTES, (size_t)0, 0ull, 0ull);
    TRY(cuMemUnmap, (CUdeviceptr)0, 2 * BYTES);
    TRY(cuMemRetainAllocationHandle, NONE, NONE);
    TRY(cuMemRetainAllocationHandle, &address, NONE);
    TRY(cuMemMapArrayAsync, NONE, 1u, NONE);
    TRY(cuMemMapArrayAsync_ptsz, NONE, 1u, NONE);
}

static void graphs(void)
{
    TRY(cuGraphInstantiateWithFlags, NONE, NONE, 0ull);
    TRY(cuGraphInstantiateWithFlags, &pointer, NONE, 0ull);
    TRY(cuGraphInstantiate, &pointer, NONE, NONE, NONE, (size_t)0);
    TRY(cuGraphInstantiate_v2, &pointer, NONE, NONE, NONE, (size_t)0);
    TRY(cuGraphInstantiateWithParams, &pointer, NONE, NONE);
    TRY(cuGraphInstantiateWithParams_ptsz, &pointer, NONE, NONE);
    TRY(cuGraphExecDestroy, NONE);
    TRY(cuGraphUpload, NONE, NONE);
    TRY(cuGraphUpload_ptsz, NONE, NONE);
    TRY(cuGraphLaunch, NONE, NONE);
    TRY(cuGraphLaunch_ptsz, NONE, NONE);
}

static void launches(void)
{
    TRY(cuLaunchKernel, NONE, 1u, 1u, 1u, 1u, 1u, 1u, 0u, NONE, NONE, NONE);
    TRY(cuLaunchKernel_ptsz, NONE, 1u, 1u, 1u, 1u, 1u, 1u, 0u, NONE, NONE, NONE);
    TRY(cuLaunchKernelEx, NONE, NONE, NONE, NONE);
    TRY(cuLaunchKernelEx_ptsz, NONE, NONE, NONE, NONE);
    TRY(cuLaunchCooperativeKernel, NONE, 1u, 1u, 1u, 1u, 1u, 1u, 0u, NONE, NONE);
    TRY(cuLaunchCooperativeKernel_ptsz, NONE, 1u, 1u, 1u, 1u, 1u, 1u, 0u, NONE, NONE);
    TRY(cuLaunchCooperativeKernelMultiDevice, NONE, 1u, 0u);
    TRY(cuLaunch, NONE);
    TRY(cuLaunchGrid, NONE, 1, 1);
    TRY(cuLaunchGridAsync, NONE, 1, 1, NONE);
}

static void others(void)
{
    TRY(cuCtxDestroy_v2, NONE);
    TRY(cuCtxDestroy, NONE);
    TRY(cuCtxSynchronize_v2, NONE);
    TRY(cuEventSynchronize, NONE);
    TRY(cuGreenCtxDestroy, NONE);
    TRY(cuStreamDestroy_v2, NONE);
    TRY(cuStreamDestroy, NONE);
    TRY(cuStreamSynchronize, NONE);
    TRY(cuStreamSynchronize_ptsz, NONE);
    TRY(cuGetProcAddress, NONE, &pointer, 12000, 0ull);
    TRY(cuGetProcAddress, "cuMemAlloc", NONE, 12000, 0ull);
    TRY(cuGetProcAddress_v2, NONE, &pointer, 12000, 0ull, &status);
    TRY(cuGetProcAddress_v2, "cuMemAlloc", NONE, 12000, 0ull, &status);
    TRY(cuGetProcAddress_v2, "cuMemAlloc", &pointer, 12000, 0ull, NONE);
}

int main(int count, char **words)
{
    library = count == 2 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return 2;
    memory();
    arrays();
    pools();
    physical();
    graphs();
    launches();
    others();
    return 0;
}
