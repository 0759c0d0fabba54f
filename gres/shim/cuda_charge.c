/* Room in the slice, before the driver is asked for memory. */
#include "cuda_shim.h"

#include <pthread.h>

static pthread_mutex_t guard = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void guard_enter(void)
{
    pthread_mutex_lock(&guard);
}

void guard_leave(void)
{
    pthread_mutex_unlock(&guard);
}

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

CUresult charge_adjust(int device, uint64_t charged, uint64_t taken)
{
    if (taken > charged)
        return charge(device, taken - charged);
    ledger_release(device, charged - taken);
    return CUDA_SUCCESS;
}

/* A child begins with nothing. Whoever of its parent's threads was in the guard is not there any more;
 * the ledger has handlers of its own. */
static void after_fork_in_child(void)
{
    guard = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    held_forget();
    pools_forget();
    tiles_forget();
    graphs_forget();
}

__attribute__((constructor)) static void prepare(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}
