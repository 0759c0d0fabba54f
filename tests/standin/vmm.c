/* Virtual memory management: physical allocations by handle, mapped at reserved addresses. The
 * memory goes when all handles are released and nothing is mapped any more. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANULARITY (2 * STANDIN_MIB)

struct physical {
    int references; /* handles and mappings */
    int handles;
    bool host, imported;
    int gpu;
    uint64_t bytes;
    CUmemAllocationProp wanted;
};

struct mapping {
    struct mapping *next;
    CUdeviceptr address; /* or an array, for sparse ones */
    uint64_t bytes;
    struct physical *physical;
};

static struct mapping *mappings;

void mappings_forget(void)
{
    mappings = NULL;
}

static void drop(struct physical *physical)
{
    if (--physical->references)
        return;
    if (!physical->host && !physical->imported)
        discharge(physical->gpu, physical->bytes);
    free(physical);
}

static struct physical *of_handle(CUmemGenericAllocationHandle handle)
{
    return (struct physical *)(uintptr_t)handle;
}

/* --- handles --------------------------------------------------------------------------------------- */

EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *wanted,
                                              int option)
{
    (void)wanted, (void)option;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

static CUresult create(struct physical **found, uint64_t bytes, const CUmemAllocationProp *wanted)
{
    const bool host = wanted->location.type != LOCATION_DEVICE;
    if (!bytes || bytes % GRANULARITY || (!host && !device_valid(wanted->location.id)))
        return CUDA_ERROR_INVALID_VALUE;
    const int gpu = host ? -1 : device_gpu(wanted->location.id);
    CUresult result = host ? CUDA_SUCCESS : charge(gpu, bytes);
    if (result)
        return result;
    struct physical *made = malloc(sizeof *made);
    if (!made)
        abort();
    *made = (struct physical){1, 1, host, false, gpu, bytes, *wanted};
    *found = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                            const CUmemAllocationProp *wanted, unsigned long long flags)
{
    if (!handle || !wanted)
        return CUDA_ERROR_INVALID_VALUE;
    struct physical *made;
    (void)flags;
    CUresult result = need_init();
    if (result)
        return result;
    pthread_mutex_lock(&driver_lock);
    result = create(&made, bytes, wanted);
    pthread_mutex_unlock(&driver_lock);
    if (!result)
        *handle = (uintptr_t)made;
    return result;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = of_handle(handle);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (!physical)
        return result;
    pthread_mutex_lock(&driver_lock);
    if (physical->handles) {
        physical->handles--;
        drop(physical);
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&driver_lock);
    return result;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *found,
                                                       CUmemGenericAllocationHandle handle)
{
    *found = of_handle(handle)->wanted;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    const CUdeviceptr wanted = (uintptr_t)address;
    pthread_mutex_lock(&driver_lock);
    struct mapping *found = mappings;
    while (found && !(wanted >= found->address && wanted - found->address < found->bytes))
        found = found->next;
    if (found) {
        found->physical->references++;
        found->physical->handles++;
        *handle = (uintptr_t)found->physical;
    }
    pthread_mutex_unlock(&driver_lock);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- addresses and mappings ------------------------------------------------------------------------ */

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                                    CUdeviceptr wanted, unsigned long long flags)
{
    (void)alignment, (void)wanted, (void)flags;
    pthread_mutex_lock(&driver_lock);
    *address = (address_take(bytes + GRANULARITY) + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
    pthread_mutex_unlock(&driver_lock);
    return need_init();
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    (void)address, (void)bytes;
    return need_init();
}

static void map(CUdeviceptr address, uint64_t bytes, struct physical *physical)
{
    struct mapping *made = malloc(sizeof *made);
    if (!made)
        abort();
    physical->references++;
    *made = (struct mapping){mappings, address, bytes, physical};
    mappings = made;
}

/* All mappings that lie in the range; how many they were. */
static int unmap(CUdeviceptr address, uint64_t bytes)
{
    int number = 0;
    for (struct mapping **place = &mappings; *place;) {
        struct mapping *found = *place;
        if (found->address < address || found->address >= address + bytes) {
            place = &found->next;
            continue;
        }
        *place = found->next;
        drop(found->physical);
        free(found);
        number++;
    }
    return number;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct physical *physical = of_handle(handle);
    if (flags || !physical || offset > physical->bytes || bytes > physical->bytes - offset)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver_lock);
    map(address, bytes, physical);
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    pthread_mutex_lock(&driver_lock);
    const int number = unmap(address, bytes);
    pthread_mutex_unlock(&driver_lock);
    return number ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                               size_t number)
{
    (void)address, (void)bytes, (void)access, (void)number;
    return need_init();
}

/* One mapping for each array here: enough to see that the memory stays while it is mapped. */
EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned number, CUstream stream)
{
    if (!list)
        return CUDA_ERROR_INVALID_VALUE;
    (void)stream;
    pthread_mutex_lock(&driver_lock);
    for (unsigned i = 0; i < number; i++) {
        const CUdeviceptr array = (uintptr_t)list[i].resource.array;
        if (list[i].memOperationType == 1) /* map */
            map(array, 1, of_handle(list[i].memHandle.memHandle));
        else
            unmap(array, 1);
    }
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}
PTSZ(cuMemMapArrayAsync);

/* --- between processes ----------------------------------------------------------------------------- */

EXPORT CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                             int type, unsigned long long flags)
{
    struct physical *physical = of_handle(handle);
    (void)flags;
    if (type != 1) /* a POSIX file descriptor */
        return CUDA_ERROR_NOT_SUPPORTED;
    const int file = memfd_create("standin", MFD_CLOEXEC);
    if (file < 0 || pwrite(file, physical, sizeof *physical, 0) != (ssize_t)sizeof *physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *(int *)shareable = file;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                               int type)
{
    struct physical *made = malloc(sizeof *made);
    if (type != 1 || !made ||
        pread((int)(intptr_t)shareable, made, sizeof *made, 0) != (ssize_t)sizeof *made) {
        free(made);
        return CUDA_ERROR_INVALID_VALUE;
    }
    made->references = made->handles = 1;
    made->imported = true;
    *handle = (uintptr_t)made;
    return CUDA_SUCCESS;
}
