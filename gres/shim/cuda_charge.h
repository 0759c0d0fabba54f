/* Reserving room in the slice before the driver is asked for memory. */
#ifndef SLIPWAY_CUDA_CHARGE_H
#define SLIPWAY_CUDA_CHARGE_H

#include "cuda_abi.h"

/* CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. Frees the unused memory of this process's pools and graphs
 * before it refuses. */
CUresult charge(int device, uint64_t bytes);
/* Corrects the charge to what was really taken; an error, without a change, if that does not fit. */
CUresult charge_adjust(int device, uint64_t charged, uint64_t taken);

/* Where the slice has room and the driver says that the GPU has none: a process of the session that was
 * killed may still hold memory, which the driver frees later than the ledger. `charge_again` waits a little
 * and returns 1 if the driver should be asked again: for about a second, and only if one has died recently.
 * No lock may be held. */
struct charge_retry {
    unsigned int naps;
};
int charge_again(CUresult result, struct charge_retry *retry);

#endif
