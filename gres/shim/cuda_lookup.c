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
#include "cuda_versions.h"
#include "cuda_vmm.h"
#include "cuda_wrap.h"
#include "trace.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static const struct hook lookup_hooks[];
static const struct hook *const tables[] = {
    lookup_hooks, memory_hooks,       array_hooks,  pool_hooks,    async_hooks,  vmm_hooks,
    graph_hooks,  graph_memory_hooks, device_hooks, context_hooks, report_hooks, launch_hooks,
};

/* By address: the driver has already resolved name, version and flags. */
static void *wrapper_of_address(void *found)
{
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        for (const struct hook *hook = tables[table]; hook->name; hook++)
            if (hook->wrapper && *hook->real == found)
                return hook->wrapper;
    return NULL;
}

static void *wrapper_of_symbol(const char *symbol)
{
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        for (const struct hook *hook = tables[table]; hook->name; hook++)
            if (hook->wrapper && !strcmp(hook->name, symbol))
                return hook->wrapper;
    return NULL;
}

/* Whether the symbol is some version of the name: cuMemAlloc_v2 of cuMemAlloc, but not cuMemAllocAsync. */
static int is_version_of(const char *symbol, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(symbol, name, length) && (!symbol[length] || symbol[length] == '_');
}

/* Whether some version of the function is wrapped: true for "cuMemAlloc", as "cuMemAlloc_v2" is. */
static int is_wrapped(const char *name)
{
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        for (const struct hook *hook = tables[table]; hook->name; hook++)
            if (hook->wrapper && is_version_of(hook->name, name))
                return 1;
    return 0;
}

/* --- for a driver whose look-up answers other addresses than it exports --- */

#define PER_THREAD_DEFAULT_STREAM 2 /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */

struct lookup {
    const char *name;
    int version;
    uint64_t flags;
    /* The driver's address for the same in another version; NULL for none. */
    void *(*ask)(const struct lookup *lookup, int version);
};

/* By the table of versions. Beyond those that it knows, only if the driver answers the same as for the
 * newest of them: otherwise it has a newer form of the function, with other parameters. */
static void *wrapper_of_version(const struct lookup *lookup, void *found)
{
    char symbol[LONGEST_SYMBOL + sizeof "_ptsz"];
    int version = lookup->version;
    if (version > NEWEST_KNOWN_VERSION) {
        version = NEWEST_KNOWN_VERSION;
        if (lookup->ask(lookup, version) != found)
            return NULL;
    }
    if (version_symbol(lookup->name, version, symbol))
        return NULL;
    char *end = symbol + strlen(symbol);
    void *threaded = NULL;
    if (lookup->flags & PER_THREAD_DEFAULT_STREAM)
        threaded = (strcpy(end, "_ptsz"), wrapper_of_symbol(symbol));
    *end = 0;
    return threaded ? threaded : wrapper_of_symbol(symbol);
}

/* A symbol at this address says which version it is, known or not. */
static void *wrapper_by_name(const struct lookup *lookup, void *found)
{
    Dl_info info;
    if (dladdr(found, &info) && info.dli_saddr == found && info.dli_sname &&
        is_version_of(info.dli_sname, lookup->name))
        return wrapper_of_symbol(info.dli_sname);
    return wrapper_of_version(lookup, found);
}

static void lookup_say(const char *name)
{
    static const char before[] = "slipway: this driver's ";
    static const char after[] = " is newer than Slipway's way of sharing GPUs, which cannot count what it "
                                "does. It is not used; please tell the administrators.\n";
    if (write(2, before, sizeof before - 1) < 0 || write(2, name, strlen(name)) < 0 ||
        write(2, after, sizeof after - 1) < 0)
        return;
}

/* A version that is unknown here would bypass the slice. */
static CUresult lookup_replace(const struct lookup *lookup, void **found)
{
    if (!lookup->name || !found || !*found)
        return CUDA_SUCCESS;
    void *wrapper = wrapper_of_address(*found);
    if (!wrapper && !is_wrapped(lookup->name))
        return CUDA_SUCCESS;
    if (!wrapper)
        wrapper = wrapper_by_name(lookup, *found);
    *found = wrapper;
    if (wrapper)
        return CUDA_SUCCESS;
    trace_unknown(lookup->name);
    lookup_say(lookup->name);
    return CUDA_ERROR_NOT_FOUND;
}

static void *ask_v1(const struct lookup *lookup, int version);

WRAP(cuGetProcAddress, const char *name, void **found, int version, uint64_t flags)
{
    CUresult result = real_cuGetProcAddress(name, found, version, flags);
    return result ? result : lookup_replace(&(struct lookup){name, version, flags, ask_v1}, found);
}

static void *ask_v1(const struct lookup *lookup, int version)
{
    void *found = NULL;
    return real_cuGetProcAddress(lookup->name, &found, version, lookup->flags) ? NULL : found;
}

#define SYMBOL_NOT_FOUND 1 /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */

static void *ask_v2(const struct lookup *lookup, int version);

WRAP(cuGetProcAddress_v2, const char *name, void **found, int version, uint64_t flags, int *status)
{
    CUresult result = real_cuGetProcAddress_v2(name, found, version, flags, status);
    if (result)
        return result;
    result = lookup_replace(&(struct lookup){name, version, flags, ask_v2}, found);
    if (result && status)
        *status = SYMBOL_NOT_FOUND;
    return result;
}

static void *ask_v2(const struct lookup *lookup, int version)
{
    void *found = NULL;
    int status;
    if (real_cuGetProcAddress_v2(lookup->name, &found, version, lookup->flags, &status))
        return NULL;
    return found;
}

static const struct hook lookup_hooks[] = {
    HOOK(cuGetProcAddress),
    HOOK(cuGetProcAddress_v2),
    HOOKS_END,
};

__attribute__((constructor)) static void fill_cuda_hooks(void)
{
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        real_fill(tables[table]);
}
