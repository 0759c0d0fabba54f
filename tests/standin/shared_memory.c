/* Memory that another process has allocated: counted there, and nowhere else. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ipc {
    uint64_t magic, bytes;
    int gpu;
};

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver_lock);
    struct allocation *found = allocation_find(address);
    if (found && found->kind == LINEAR) {
        const struct ipc ipc = {STANDIN_MAGIC, found->bytes, found->gpu};
        memset(handle, 0, sizeof *handle);
        memcpy(handle, &ipc, sizeof ipc);
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&driver_lock);
    return result;
}

/* Whether NVML counts such memory for this process, too, is not documented: tests try both. */
static bool counted(void)
{
    return getenv("STANDIN_IMPORTS_COUNT") != NULL;
}

static CUdeviceptr import(int gpu, uint64_t bytes)
{
    pthread_mutex_lock(&driver_lock);
    const CUdeviceptr address = address_take(bytes);
    allocation_add(IMPORTED, gpu, address, bytes);
    if (counted())
        figure_add(gpu, (int64_t)bytes);
    pthread_mutex_unlock(&driver_lock);
    return address;
}

void import_end(struct allocation *allocation)
{
    if (counted())
        figure_add(allocation->gpu, -(int64_t)allocation->bytes);
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
    struct context *context;
    struct ipc ipc;
    (void)flags;
    CUresult result = need_context(&context);
    memcpy(&ipc, &handle, sizeof ipc);
    if (result || ipc.magic != STANDIN_MAGIC)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    *address = import(ipc.gpu, ipc.bytes);
    return CUDA_SUCCESS;
}
ALIAS(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2);

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    pthread_mutex_lock(&driver_lock);
    CUresult result = allocation_free(address);
    pthread_mutex_unlock(&driver_lock);
    return result;
}

struct external {
    int gpu;
    uint64_t bytes;
};

EXPORT CUresult cuImportExternalMemory(CUexternalMemory *found,
                                       const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *handle)
{
    struct context *context;
    CUresult result = need_context(&context);
    if (result)
        return result;
    struct external *made = malloc(sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct external){device_gpu(context->device), handle->size};
    close(handle->handle.fd); /* a successful import takes the descriptor over */
    *found = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory memory,
                                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *buffer)
{
    if (buffer->offset > memory->bytes || buffer->size > memory->bytes - buffer->offset)
        return CUDA_ERROR_INVALID_VALUE;
    *address = import(memory->gpu, buffer->size);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
    free(memory);
    return CUDA_SUCCESS;
}
