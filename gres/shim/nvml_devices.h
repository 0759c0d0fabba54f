/* Which GPUs the session has. */
#ifndef SLIPWAY_NVML_DEVICES_H
#define SLIPWAY_NVML_DEVICES_H

#include "nvml_abi.h"

/* The slice's index of a GPU of which the session has a part; -1 where the driver's own answer stands (a
 * whole GPU, a MIG device, or an invalid handle). */
int nvml_slice_index(nvmlDevice_t device);

#endif
