/* Reserving room in the slice before the driver is asked for memory. */
#ifndef SLIPWAY_CUDA_CHARGE_H
#define SLIPWAY_CUDA_CHARGE_H

#include "cuda_abi.h"

/* CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. What this process's pools and graphs keep unused is given back
 * before the answer is no. */
CUresult charge(int device, uint64_t bytes);
/* The charge becomes what was really taken; an error, and no change, when that does not fit. */
CUresult charge_adjust(int device, uint64_t charged, uint64_t taken);

#endif
