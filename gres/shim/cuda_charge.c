/* Room in the slice, before the driver is asked for memory. */
#include "cuda_shim.h"

/* As the driver itself, give back what pools and graphs keep without need before saying no. */
CUresult charge(int device, uint64_t bytes)
{
    if (!ledger_reserve(device, bytes))
        return CUDA_SUCCESS;
    if (device == DEVICE_FOREIGN)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pools_settle();
    graphs_settle();
    if (!ledger_reserve(device, bytes))
        return CUDA_SUCCESS;
    pools_trim();
    graphs_trim();
    return ledger_reserve(device, bytes) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult charge_grow(int device, uint64_t charged, uint64_t taken)
{
    if (taken > charged)
        return charge(device, taken - charged);
    ledger_release(device, charged - taken);
    return CUDA_SUCCESS;
}
