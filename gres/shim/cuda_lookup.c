/* Every way to look up a function of libcuda finds the shim's: linking and dlsym() because it is exported
 * here, cuGetProcAddress by replacing the address that the driver itself returns. */
#include "cuda_arrays.h"
#include "cuda_async.h"
#include "cuda_context.h"
#include "cuda_device.h"
#include "cuda_graph_memory.h"
#include "cuda_graphs.h"
#include "cuda_launch.h"
#include "cuda_memory.h"
#include "cuda_pools.h"
#include "cuda_report.h"
#include "cuda_vmm.h"
#include "cuda_wrap.h"
#include "trace.h"

#include <string.h>
#include <unistd.h>

static const struct hook lookup_hooks[];
static const struct hook *const tables[] = {
    lookup_hooks, memory_hooks,       array_hooks,  pool_hooks,    async_hooks,  vmm_hooks,
    graph_hooks,  graph_memory_hooks, device_hooks, context_hooks, report_hooks, launch_hooks,
};

/* By address: the driver has already resolved name, version and flags. */
static void *ours(void *found)
{
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        for (const struct hook *hook = tables[table]; hook->name; hook++)
            if (hook->wrapper && *hook->real == found)
                return hook->wrapper;
    return NULL;
}

/* Whether some version of the function is wrapped: true for "cuMemAlloc", as "cuMemAlloc_v2" is. */
static int is_wrapped(const char *name)
{
    size_t length = strlen(name);
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        for (const struct hook *hook = tables[table]; hook->name; hook++)
            if (hook->wrapper && !strncmp(hook->name, name, length) &&
                (!hook->name[length] || hook->name[length] == '_'))
                return 1;
    return 0;
}

static void say(const char *name)
{
    static const char before[] = "slipway: this driver's ";
    static const char after[] = " is newer than Slipway's way of sharing GPUs, which cannot count what it "
                                "does. It is not used; please tell the administrators.\n";
    if (write(2, before, sizeof before - 1) < 0 || write(2, name, strlen(name)) < 0 ||
        write(2, after, sizeof after - 1) < 0)
        return;
}

/* A version that is unknown here would bypass the slice. */
static CUresult replace(const char *name, void **found)
{
    if (!found || !*found)
        return CUDA_SUCCESS;
    void *wrapper = ours(*found);
    if (wrapper) {
        *found = wrapper;
        return CUDA_SUCCESS;
    }
    if (!is_wrapped(name))
        return CUDA_SUCCESS;
    trace_unknown(name);
    say(name);
    *found = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

WRAP(cuGetProcAddress, const char *name, void **found, int version, uint64_t flags)
{
    CUresult result = real_cuGetProcAddress(name, found, version, flags);
    return result ? result : replace(name, found);
}

#define SYMBOL_NOT_FOUND 1 /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */

WRAP(cuGetProcAddress_v2, const char *name, void **found, int version, uint64_t flags, int *status)
{
    CUresult result = real_cuGetProcAddress_v2(name, found, version, flags, status);
    if (result)
        return result;
    result = replace(name, found);
    if (result && status)
        *status = SYMBOL_NOT_FOUND;
    return result;
}

static const struct hook lookup_hooks[] = {
    HOOK(cuGetProcAddress),
    HOOK(cuGetProcAddress_v2),
    HOOKS_END,
};

__attribute__((constructor)) static void prepare(void)
{
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        real_fill(tables[table]);
}
