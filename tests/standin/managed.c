/* Managed memory: pages of the host, as programs may touch them, which count as the GPU's in full. NVML's
 * figure of a process lacks it; the kernel shows it as a mapping of /dev/nvidia-uvm. */
#define _GNU_SOURCE
#include "driver.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIGNMENT (2 * STANDIN_MIB)

/* Of the device file if that is an ordinary one, as in tests; it has to be as long as what is mapped. */
static void *map_at(void *address, uint64_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED;
    struct stat status;
    int file = open(STANDIN_DEVICE "-uvm", O_RDWR | O_CLOEXEC);
    if (file >= 0 && (fstat(file, &status) || !S_ISREG(status.st_mode) ||
                      (status.st_size < (off_t)bytes && ftruncate(file, (off_t)bytes)))) {
        close(file);
        file = -1;
    }
    void *memory = mmap(address, bytes, PROT_READ | PROT_WRITE,
                        file < 0 ? flags | MAP_ANONYMOUS : flags, file, 0);
    if (file >= 0)
        close(file);
    if (memory != MAP_FAILED)
        madvise(memory, bytes, MADV_DONTFORK); /* as the driver does */
    return memory;
}

static void *map_pages(uint64_t bytes)
{
    char *all = mmap(NULL, bytes + ALIGNMENT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                     -1, 0);
    if (all == MAP_FAILED)
        return MAP_FAILED;
    char *start = (char *)(((uintptr_t)all + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    const uint64_t before = (uint64_t)(start - all);
    if (before)
        munmap(all, before);
    munmap(start + bytes, ALIGNMENT - before);
    return map_at(start, bytes);
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    if (!bytes || flags < 1 || flags > 4)
        return CUDA_ERROR_INVALID_VALUE;
    const int gpu = device_gpu(context->device);
    const uint64_t taken = blocks_of(bytes);
    pthread_mutex_lock(&driver_lock);
    result = charge(gpu, taken);
    void *memory = result ? MAP_FAILED : map_pages(taken);
    if (!result && memory == MAP_FAILED) {
        discharge(gpu, taken);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!result) {
        *address = (uintptr_t)memory;
        figure_add(gpu, -(int64_t)taken);
        allocation_add(MANAGED, gpu, *address, bytes);
    }
    pthread_mutex_unlock(&driver_lock);
    return result;
}

void managed_end(struct allocation *allocation)
{
    const uint64_t taken = blocks_of(allocation->bytes);
    figure_add(allocation->gpu, (int64_t)taken);
    discharge(allocation->gpu, taken);
    munmap((void *)(uintptr_t)allocation->address, taken);
}
