#include "cuda_charge.h"

#include "cuda_device.h"
#include "cuda_graphs.h"
#include "cuda_pools.h"
#include "ledger.h"

#include <time.h>

#define CHARGE_NAP_NS 20000000
#define CHARGE_NAPS 50
#define CHARGE_DEATH 5 /* seconds ago in which a process may have died */

/* Like the driver itself, frees the unused memory of pools and graphs before it refuses. */
CUresult charge(int device, uint64_t bytes)
{
    if (!ledger_reserve(device, bytes))
        return CUDA_SUCCESS;
    if (device == DEVICE_FOREIGN)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pools_sync();
    graphs_sync();
    if (!ledger_reserve(device, bytes))
        return CUDA_SUCCESS;
    pools_trim();
    graphs_trim();
    return ledger_reserve(device, bytes) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult charge_adjust(int device, uint64_t charged, uint64_t taken)
{
    if (taken > charged)
        return charge(device, taken - charged);
    ledger_release(device, charged - taken);
    return CUDA_SUCCESS;
}

int charge_again(CUresult result, struct charge_retry *retry)
{
    const struct timespec nap = {0, CHARGE_NAP_NS};
    if (result != CUDA_ERROR_OUT_OF_MEMORY || retry->naps >= CHARGE_NAPS)
        return 0;
    if (!retry->naps && !ledger_death_within(CHARGE_DEATH))
        return 0;
    retry->naps++;
    nanosleep(&nap, NULL);
    return 1;
}
