/* A forked child starts with no memory of its parent's; the ledger and the limiter have handlers of their
 * own. */
#include "cuda_allocations.h"
#include "cuda_graphs.h"
#include "cuda_guard.h"
#include "cuda_pools.h"
#include "cuda_vmm.h"

#include <pthread.h>

static void fork_reset_child(void)
{
    guard_reset();
    allocations_forget();
    pools_forget();
    tiles_forget();
    graphs_forget();
}

__attribute__((constructor)) static void fork_prepare(void)
{
    pthread_atfork(NULL, NULL, fork_reset_child);
}
