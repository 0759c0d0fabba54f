/* Kernels: a kernel's first parameter says for how many microseconds it keeps the GPU busy. */
#define _GNU_SOURCE
#include "driver.h"

#include <string.h>

static struct kernel only;

/* --- where functions come from --------------------------------------------------------------------- */

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    struct context *context;
    (void)image;
    *module = &only;
    return need_context(&context);
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    (void)module;
    return need_init();
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module, (void)name;
    *function = &only;
    return need_init();
}

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, void *jit, void **jit_values,
                                  unsigned jit_count, void *options, void **values, unsigned count)
{
    (void)code, (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    *library = &only;
    return need_init();
}

EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    (void)library;
    return need_init();
}

EXPORT CUresult cuLibraryGetKernel(CUfunction *kernel, CUlibrary library, const char *name)
{
    return cuModuleGetFunction(kernel, library, name);
}

EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUfunction kernel)
{
    *function = kernel;
    return need_init();
}

/* --- launches -------------------------------------------------------------------------------------- */

static uint64_t duration(void *const *parameters)
{
    return parameters ? *(const unsigned *)parameters[0] * 1000ull : 0;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                               CUstream stream, void **parameters, void **extra)
{
    (void)function, (void)shared, (void)extra;
    if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z)
        return CUDA_ERROR_INVALID_VALUE;
    return stream_launch(stream, duration(parameters), (uint64_t)grid_x * grid_y * grid_z);
}
PTSZ_OF(cuLaunchKernel,
        (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
         unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,
         void **extra),
        (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, per_thread(stream),
         parameters, extra))

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *wanted, CUfunction function, void **parameters,
                                 void **extra)
{
    if (!wanted)
        return CUDA_ERROR_INVALID_VALUE;
    return cuLaunchKernel(function, wanted->gridDimX, wanted->gridDimY, wanted->gridDimZ,
                          wanted->blockDimX, wanted->blockDimY, wanted->blockDimZ,
                          wanted->sharedMemBytes, wanted->hStream, parameters, extra);
}

EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *wanted, CUfunction function,
                                      void **parameters, void **extra);
EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *wanted, CUfunction function,
                                      void **parameters, void **extra)
{
    if (!wanted)
        return CUDA_ERROR_INVALID_VALUE;
    CUlaunchConfig threaded = *wanted;
    threaded.hStream = per_thread(wanted->hStream);
    return cuLaunchKernelEx(&threaded, function, parameters, extra);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                          unsigned grid_z, unsigned block_x, unsigned block_y,
                                          unsigned block_z, unsigned shared, CUstream stream,
                                          void **parameters)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                          parameters, NULL);
}
PTSZ_OF(cuLaunchCooperativeKernel,
        (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
         unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters),
        (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, per_thread(stream),
         parameters))

EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned number,
                                                     unsigned flags)
{
    if (!list)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    (void)flags;
    for (unsigned i = 0; !result && i < number; i++)
        result = cuLaunchKernel(list[i].function, list[i].gridDimX, list[i].gridDimY,
                                list[i].gridDimZ, list[i].blockDimX, list[i].blockDimY,
                                list[i].blockDimZ, list[i].sharedMemBytes, list[i].hStream,
                                list[i].kernelParams, NULL);
    return result;
}

/* --- launches of CUDA 3 and before: parameters are set one by one ------------------------------------ */

static unsigned char legacy_parameters[4096];

static CUresult set_parameter(int offset, const void *value, unsigned bytes)
{
    if (offset < 0 || (unsigned)offset + bytes > sizeof legacy_parameters)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(legacy_parameters + offset, value, bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuParamSetSize(CUfunction function, unsigned bytes)
{
    (void)function, (void)bytes;
    return need_init();
}

EXPORT CUresult cuParamSeti(CUfunction function, int offset, unsigned value)
{
    (void)function;
    return set_parameter(offset, &value, sizeof value);
}

EXPORT CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned bytes)
{
    (void)function;
    return set_parameter(offset, value, bytes);
}

EXPORT CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
    (void)function, (void)x, (void)y, (void)z;
    return need_init();
}

EXPORT CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
    unsigned us;
    (void)function;
    memcpy(&us, legacy_parameters, sizeof us);
    return stream_launch(stream, us * 1000ull, (uint64_t)width * (uint64_t)height);
}

EXPORT CUresult cuLaunchGrid(CUfunction function, int width, int height)
{
    return cuLaunchGridAsync(function, width, height, NULL);
}

EXPORT CUresult cuLaunch(CUfunction function)
{
    return cuLaunchGridAsync(function, 1, 1, NULL);
}
