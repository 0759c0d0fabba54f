/* All ways to launch work on a GPU, each gated by the limiter. Launches into a stream that is being
 * captured pass: they run when their graph is launched. */
#include "cuda_launch.h"

#include "cuda_graphs.h"
#include "limiter.h"

typedef struct CUfunc_st *CUfunction;

typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    void *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

typedef struct {
    CUfunction function;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    void **kernelParams;
} CUDA_LAUNCH_PARAMS;

/* Launch attributes with which a kernel may begin before the one in front of it has ended */
typedef struct {
    int id;
    int padding;
    int value[16];
} CUlaunchAttribute;
#define CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION 6
#define CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT 7

static struct work work_of(const void *function, unsigned x, unsigned y, unsigned z)
{
    const uint64_t blocks = (uint64_t)x * y * z; /* x < 2^31, y and z < 2^16 */
    return (struct work){.function = (uintptr_t)function,
                         .blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX};
}

static struct work work_with_attributes(const CUlaunchConfig *config, const void *function)
{
    struct work work = work_of(function, config->gridDimX, config->gridDimY, config->gridDimZ);
    const CUlaunchAttribute *attributes = config->attrs;
    for (unsigned at = 0; attributes && at < config->numAttrs; at++)
        work.overlaps |= (attributes[at].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                          attributes[at].value[0]) ||
                         attributes[at].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    return work;
}

/* GATED(stream that a null one stands for, stream, what is launched, call) is the body of a launch. */
#define GATED(null_stream, stream, what, call)                                                      \
    struct launch launch;                                                                           \
    const struct work launched = (what);                                                            \
    launch_begin(&launch, (stream) ? (void *)(stream) : (null_stream), &launched);                  \
    CUresult result = (call);                                                                       \
    launch_end(&launch, result);                                                                    \
    return result

/* Each launch exists twice: for programs with one default stream, and (_ptsz) with one per thread. */
#define KERNEL_PARAMETERS                                                                           \
    CUfunction f, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,           \
        unsigned block_z, unsigned shared, CUstream stream, void **parameters
#define KERNEL_ARGUMENTS f, x, y, z, block_x, block_y, block_z, shared, stream, parameters

#define WRAP_KERNEL(name, null_stream)                                                              \
    WRAP(name, KERNEL_PARAMETERS, void **extra)                                                     \
    {                                                                                               \
        GATED(null_stream, stream, work_of(f, x, y, z), real_##name(KERNEL_ARGUMENTS, extra));      \
    }
WRAP_KERNEL(cuLaunchKernel, STREAM_LEGACY)
WRAP_KERNEL(cuLaunchKernel_ptsz, STREAM_PER_THREAD)

#define WRAP_COOPERATIVE(name, null_stream)                                                         \
    WRAP(name, KERNEL_PARAMETERS)                                                                   \
    {                                                                                               \
        GATED(null_stream, stream, work_of(f, x, y, z), real_##name(KERNEL_ARGUMENTS));             \
    }
WRAP_COOPERATIVE(cuLaunchCooperativeKernel, STREAM_LEGACY)
WRAP_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, STREAM_PER_THREAD)

#define WRAP_EX(name, null_stream)                                                                  \
    WRAP(name, const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra)         \
    {                                                                                               \
        if (!config) /* the driver returns the error */                                             \
            return real_##name(config, f, parameters, extra);                                       \
        GATED(null_stream, config->hStream, work_with_attributes(config, f),                        \
              real_##name(config, f, parameters, extra));                                           \
    }
WRAP_EX(cuLaunchKernelEx, STREAM_LEGACY)
WRAP_EX(cuLaunchKernelEx_ptsz, STREAM_PER_THREAD)

#define WRAP_GRAPH(name, null_stream)                                                               \
    WRAP(name, CUgraphExec graph, CUstream stream)                                                  \
    {                                                                                               \
        GATED(null_stream, stream, work_of(graph, 1, 1, 1),                                         \
              graph_launch(__func__, real_##name, graph, stream));                                  \
    }
WRAP_GRAPH(cuGraphLaunch, STREAM_LEGACY)
WRAP_GRAPH(cuGraphLaunch_ptsz, STREAM_PER_THREAD)

/* One launch on several GPUs. A share is always of one GPU, so the first stream stands for all. */
WRAP(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *list, unsigned count, unsigned flags)
{
    if (!list || !count)
        return real_cuLaunchCooperativeKernelMultiDevice(list, count, flags);
    GATED(STREAM_LEGACY, list->hStream,
          work_of(list->function, list->gridDimX, list->gridDimY, list->gridDimZ),
          real_cuLaunchCooperativeKernelMultiDevice(list, count, flags));
}

/* As it was before CUDA 4.0 */
WRAP(cuLaunch, CUfunction f)
{
    GATED(STREAM_LEGACY, NULL, work_of(f, 1, 1, 1), real_cuLaunch(f));
}

WRAP(cuLaunchGrid, CUfunction f, int width, int height)
{
    GATED(STREAM_LEGACY, NULL, work_of(f, (unsigned)width, (unsigned)height, 1),
          real_cuLaunchGrid(f, width, height));
}

WRAP(cuLaunchGridAsync, CUfunction f, int width, int height, CUstream stream)
{
    GATED(STREAM_LEGACY, stream, work_of(f, (unsigned)width, (unsigned)height, 1),
          real_cuLaunchGridAsync(f, width, height, stream));
}

const struct hook launch_hooks[] = {
    HOOK(cuLaunchKernel),
    HOOK(cuLaunchKernel_ptsz),
    HOOK(cuLaunchKernelEx),
    HOOK(cuLaunchKernelEx_ptsz),
    HOOK(cuLaunchCooperativeKernel),
    HOOK(cuLaunchCooperativeKernel_ptsz),
    HOOK(cuLaunchCooperativeKernelMultiDevice),
    HOOK(cuGraphLaunch),
    HOOK(cuGraphLaunch_ptsz),
    HOOK(cuLaunch),
    HOOK(cuLaunchGrid),
    HOOK(cuLaunchGridAsync),
    HOOKS_END,
};
