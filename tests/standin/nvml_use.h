/* What the two parts of the stand-in libnvidia-ml.so.1 share. */
#ifndef STANDIN_NVML_USE_H
#define STANDIN_NVML_USE_H

#include "nvml.h"
#include "state.h"

nvmlReturn_t nvml_gpu(nvmlDevice_t device, int *gpu);
unsigned nvml_busy_percent(int gpu); /* of all processes together */

#endif
