/* However a program finds a function of libcuda, it finds the shim's: by linking or dlsym() because it
 * is exported here, and through cuGetProcAddress by the address that the driver itself answers. */
#include "cuda_shim.h"

static const struct hook lookup_hooks[];
static const struct hook *const tables[] = {
    lookup_hooks, memory_hooks, array_hooks,  pool_hooks,   vmm_hooks,
    graph_hooks,  device_hooks, context_hooks, report_hooks, launch_hooks,
};

/* Which version of a function a name, a number and flags stand for, the driver has decided already. */
static void *ours(void *found)
{
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        for (const struct hook *hook = tables[table]; hook->name; hook++)
            if (hook->wrapper && *hook->real == found)
                return hook->wrapper;
    return found;
}

WRAP(cuGetProcAddress, const char *name, void **found, int version, uint64_t flags)
{
    CUresult answer = real_cuGetProcAddress(name, found, version, flags);
    if (!answer && found && *found)
        *found = ours(*found);
    return answer;
}

WRAP(cuGetProcAddress_v2, const char *name, void **found, int version, uint64_t flags, int *status)
{
    CUresult answer = real_cuGetProcAddress_v2(name, found, version, flags, status);
    if (!answer && found && *found)
        *found = ours(*found);
    return answer;
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
