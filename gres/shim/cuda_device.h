/* Which of the slice's GPUs a call is about. */
#ifndef SLIPWAY_CUDA_DEVICE_H
#define SLIPWAY_CUDA_DEVICE_H

#include "cuda_wrap.h"

#define DEVICE_NONE (-1)    /* no context: the call goes to the driver, which returns the error */
#define DEVICE_FOREIGN (-2) /* a GPU that is not the job's: the ledger refuses */

/* The slice's index of the calling thread's current device, or one of the two above. */
int current_device(void);
int device_of(CUdevice ordinal); /* likewise; never DEVICE_NONE */
CUcontext current_context(void); /* NULL for none */
CUresult context_device(CUcontext context, CUdevice *ordinal);
CUresult stream_device(CUstream stream, CUdevice *ordinal);

extern const struct hook device_hooks[];

#endif
