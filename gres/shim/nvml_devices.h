/* The session's GPUs. */
#ifndef SLIPWAY_NVML_DEVICES_H
#define SLIPWAY_NVML_DEVICES_H

#include "nvml_abi.h"

/* The slice's index of a GPU of which the session has a part; -1 if the driver's own result is returned (a
 * whole GPU, a MIG device, or an invalid handle). */
int nvml_slice_index(nvmlDevice_t device);

#endif
