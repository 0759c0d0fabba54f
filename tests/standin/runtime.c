/* What CUDA's runtime library and Python bindings ask of the driver beyond what programs do. */
#define _GNU_SOURCE
#include "driver.h"

#define LAZY_LOADING 2

EXPORT CUresult cuModuleGetLoadingMode(int *mode)
{
    *mode = LAZY_LOADING;
    return need_init();
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct context *context;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return need_context(&context);
}
