#include "cuda_versions.h"

#include <stddef.h>
#include <string.h>

/* Wrapped functions that have more than one form; of several lines for a name, the last that is old enough
 * counts. All others are exported by the name that is looked up. As in CUDA's cudaTypedefs.h. */
static const struct version {
    const char *name;
    int since; /* version of CUDA */
    const char *symbol;
} versions[] = {
    {"cuArray3DCreate", 2000, "cuArray3DCreate"},
    {"cuArray3DCreate", 3020, "cuArray3DCreate_v2"},
    {"cuArrayCreate", 2000, "cuArrayCreate"},
    {"cuArrayCreate", 3020, "cuArrayCreate_v2"},
    {"cuCtxDestroy", 2000, "cuCtxDestroy"},
    {"cuCtxDestroy", 4000, "cuCtxDestroy_v2"},
    {"cuCtxSynchronize", 2000, "cuCtxSynchronize"},
    {"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"},
    {"cuDevicePrimaryCtxRelease", 7000, "cuDevicePrimaryCtxRelease"},
    {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2"},
    {"cuDevicePrimaryCtxReset", 7000, "cuDevicePrimaryCtxReset"},
    {"cuDevicePrimaryCtxReset", 11000, "cuDevicePrimaryCtxReset_v2"},
    {"cuDeviceTotalMem", 2000, "cuDeviceTotalMem"},
    {"cuDeviceTotalMem", 3020, "cuDeviceTotalMem_v2"},
    {"cuGetProcAddress", 11030, "cuGetProcAddress"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuGraphInstantiate", 10000, "cuGraphInstantiate"},
    {"cuGraphInstantiate", 11000, "cuGraphInstantiate_v2"},
    {"cuGraphInstantiate", 11040, NULL}, /* here cuda.h and cuGetProcAddress disagree about the parameters */
    {"cuMemAlloc", 2000, "cuMemAlloc"},
    {"cuMemAlloc", 3020, "cuMemAlloc_v2"},
    {"cuMemAllocPitch", 2000, "cuMemAllocPitch"},
    {"cuMemAllocPitch", 3020, "cuMemAllocPitch_v2"},
    {"cuMemFree", 2000, "cuMemFree"},
    {"cuMemFree", 3020, "cuMemFree_v2"},
    {"cuMemGetInfo", 2000, "cuMemGetInfo"},
    {"cuMemGetInfo", 3020, "cuMemGetInfo_v2"},
    {"cuStreamDestroy", 2000, "cuStreamDestroy"},
    {"cuStreamDestroy", 4000, "cuStreamDestroy_v2"},
};

int version_symbol(const char *name, int version, char *symbol)
{
    const char *found = name;
    int known = 0;
    for (size_t at = 0; at < sizeof versions / sizeof *versions; at++) {
        if (strcmp(versions[at].name, name))
            continue;
        if (!known)
            found = NULL;
        known = 1;
        if (versions[at].since <= version)
            found = versions[at].symbol;
    }
    if (!found || strlen(found) >= LONGEST_SYMBOL)
        return -1;
    strcpy(symbol, found);
    return 0;
}
