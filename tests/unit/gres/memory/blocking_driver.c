/* A driver whose functions wait as a real one's do with a full channel. It stands between the shim and the
 * stand-in: each of these functions waits while the file of its name is in FOLDER, except in the program's
 * first thread, and says so by a file NAME.waits. */
#define _GNU_SOURCE
#include "cuda.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *standin(const char *name)
{
    return dlsym(dlopen(STANDIN, RTLD_LAZY | RTLD_NOLOAD), name);
}

static void wait_in(const char *name)
{
    char path[512], waits[sizeof path + 8];
    snprintf(path, sizeof path, FOLDER "/%s", name);
    snprintf(waits, sizeof waits, "%s.waits", path);
    if (syscall(SYS_gettid) == getpid() || access(path, F_OK))
        return;
    close(open(waits, O_CREAT | O_WRONLY, 0666));
    while (!access(path, F_OK))
        usleep(1000);
}

#define BLOCKING(name, arguments, ...)                                                              \
    EXPORT CUresult name(__VA_ARGS__);                                                              \
    EXPORT CUresult name(__VA_ARGS__)                                                               \
    {                                                                                               \
        CUresult (*next)(__VA_ARGS__) = standin(#name);                                             \
        CUresult result;                                                                            \
        wait_in(#name);                                                                             \
        result = next arguments;                                                                    \
        wait_in(#name "-after");                                                                    \
        return result;                                                                              \
    }

BLOCKING(cuMemAlloc_v2, (address, bytes), CUdeviceptr *address, size_t bytes)
BLOCKING(cuMemAllocAsync, (address, bytes, stream), CUdeviceptr *address, size_t bytes, CUstream stream)
BLOCKING(cuMemAllocFromPoolAsync, (address, bytes, pool, stream), CUdeviceptr *address, size_t bytes,
         CUmemoryPool pool, CUstream stream)
BLOCKING(cuMemCreate, (handle, bytes, wanted, flags), CUmemGenericAllocationHandle *handle, size_t bytes,
         const CUmemAllocationProp *wanted, unsigned long long flags)
BLOCKING(cuGraphLaunch, (executable, stream), CUgraphExec executable, CUstream stream)
BLOCKING(cuGraphUpload, (executable, stream), CUgraphExec executable, CUstream stream)
