/* cuGetProcAddress in its two forms, and the names of errors. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PER_THREAD_DEFAULT_STREAM 2

/* Functions of which there is more than one; all others have been there from the beginning. */
static const struct version {
    const char *name; /* as asked for */
    int since;
    const char *symbol;
} versions[] = {
    /* Of several lines for one name the last that is old enough counts. */
#define SECOND(name, since) {#name, 2000, #name}, {#name, since, #name "_v2"}
    SECOND(cuArray3DCreate, 3020),
    SECOND(cuArrayCreate, 3020),
    SECOND(cuCtxDestroy, 4000),
    SECOND(cuCtxPopCurrent, 4000),
    SECOND(cuCtxPushCurrent, 4000),
    SECOND(cuDevicePrimaryCtxRelease, 11000),
    SECOND(cuDevicePrimaryCtxReset, 11000),
    SECOND(cuDevicePrimaryCtxSetFlags, 11000),
    SECOND(cuDeviceGetUuid, 11040),
    SECOND(cuDeviceTotalMem, 3020),
    SECOND(cuEventDestroy, 4000),
    SECOND(cuEventElapsedTime, 12080),
    SECOND(cuGraphAddKernelNode, 12000),
    SECOND(cuIpcOpenMemHandle, 11000),
    SECOND(cuMemAlloc, 3020),
    SECOND(cuMemAllocHost, 3020),
    SECOND(cuMemAllocPitch, 3020),
    SECOND(cuMemFree, 3020),
    SECOND(cuMemGetInfo, 3020),
    SECOND(cuMemHostRegister, 6050),
    SECOND(cuStreamBeginCapture, 10010),
    SECOND(cuStreamDestroy, 4000),
    {"cuCtxCreate", 2000, "cuCtxCreate"},
    {"cuCtxCreate", 3020, "cuCtxCreate_v2"},
    {"cuCtxCreate", 11040, "cuCtxCreate_v3"},
    {"cuCtxCreate", 12050, "cuCtxCreate_v4"},
    {"cuCtxSynchronize", 2000, "cuCtxSynchronize"},
    {"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"},
    {"cuCtxGetDevice", 2000, "cuCtxGetDevice"},
    {"cuCtxGetDevice", 13000, "cuCtxGetDevice_v2"},
    {"cuGetProcAddress", 11030, "cuGetProcAddress"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuGraphAddNode", 12020, "cuGraphAddNode"},
    {"cuGraphAddNode", 12030, "cuGraphAddNode_v2"},
    {"cuGraphInstantiate", 10000, "cuGraphInstantiate"},
    {"cuGraphInstantiate", 11000, "cuGraphInstantiate_v2"},
    {"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"},
    {"cuMemAllocAsync", 11020, "cuMemAllocAsync"},
    {"cuMemAllocFromPoolAsync", 11020, "cuMemAllocFromPoolAsync"},
    {"cuMemAllocManaged", 6000, "cuMemAllocManaged"},
    {"cuMemCreate", 10020, "cuMemCreate"},
    {"cuMemFreeAsync", 11020, "cuMemFreeAsync"},
    {"cuMemSetMemPool", 13000, "cuMemSetMemPool"},
    {"cuLaunchKernelEx", 11060, "cuLaunchKernelEx"},
    {"cuStreamGetCtx", 9020, "cuStreamGetCtx"},
    {"cuStreamGetCtx", 12050, "cuStreamGetCtx_v2"},
    {"cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"},
};

/* The library itself, whatever stands before it in the process. */
static void *own_symbol(const char *name)
{
    static void *self;
    Dl_info found;
    if (!self && dladdr((void *)own_symbol, &found))
        self = dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return self ? dlsym(self, name) : NULL;
}

static bool has_suffix(const char *name)
{
    const char *last = strrchr(name, '_');
    return last && (strcmp(last, "_ptsz") == 0 || strncmp(last, "_v", 2) == 0);
}

/* The symbol for the name: 0 found, else what the newer form calls its status. */
static int find(const char *name, int wanted, uint64_t flags, void **function)
{
    char threaded[128];
    const char *symbol = name;
    bool known = false;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (strcmp(versions[i].name, name))
            continue;
        if (!known)
            symbol = NULL;
        known = true;
        if (versions[i].since <= wanted)
            symbol = versions[i].symbol;
    }
    if (!symbol)
        return 2;
    if (has_suffix(name))
        return 1;
    snprintf(threaded, sizeof threaded, "%s_ptsz", symbol);
    if (flags & PER_THREAD_DEFAULT_STREAM)
        *function = own_symbol(threaded);
    if (!*function)
        *function = own_symbol(symbol);
    return *function ? 0 : 1;
}

/* For tests: what was looked up, line by line: name, version, flags, and the symbol that was found. */
static void note(const char *name, int version, uint64_t flags, void *found)
{
    Dl_info symbol = {.dli_sname = NULL};
    const char *path = getenv("STANDIN_LOOKUPS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    const bool known = found && dladdr(found, &symbol) && symbol.dli_sname;
    fprintf(file, "%s %d %llu %s\n", name, version, (unsigned long long)flags,
            known ? symbol.dli_sname : "-");
    fclose(file);
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                                    int *status)
{
    if (!name || !function || version > DRIVER_VERSION)
        return CUDA_ERROR_INVALID_VALUE;
    *function = NULL;
    const int found = find(name, version, flags, function);
    note(name, version, flags, *function);
    if (status)
        *status = found;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    CUresult result = cuGetProcAddress_v2(name, function, version, flags, NULL);
    return result ? result : *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *wanted)
{
    (void)wanted;
    *table = NULL;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static const struct { int error; const char *name, *text; } errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a "
                                       "capturing stream"},
};

static CUresult describe(int error, const char **text, bool name)
{
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            *text = name ? errors[i].name : errors[i].text;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorName(int error, const char **text)
{
    return describe(error, text, true);
}

EXPORT CUresult cuGetErrorString(int error, const char **text)
{
    return describe(error, text, false);
}
