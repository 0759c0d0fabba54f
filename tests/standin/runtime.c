/* What CUDA's runtime library (libcudart) asks of the driver beyond what programs do. */
#define _GNU_SOURCE
#include "driver.h"

#define LAZY_LOADING 2

EXPORT CUresult cuModuleGetLoadingMode(int *mode)
{
    *mode = LAZY_LOADING;
    return need_init();
}
