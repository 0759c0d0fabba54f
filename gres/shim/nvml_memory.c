/* The memory of the session's GPUs, as nvidia-smi and others query it from NVML. */
#include "ledger.h"
#include "nvml_devices.h"
#include "nvml_processes.h"
#include "nvml_wrap.h"
#include "slice.h"

#include <stdlib.h>

/* The used memory is the ledger's sum, or the driver's for the session's processes if that is more. */
static void memory_of_slice(nvmlDevice_t device, int slice_index, nvmlMemory_t *memory)
{
    struct nvml_process *own;
    nvmlBytes processes = 0;
    for (int index = nvml_own_processes(device, slice_index, &own) - 1; index >= 0; index--)
        processes += own[index].bytes;
    free(own);
    const nvmlBytes counted = ledger_used(slice_index), most = slice()->device[slice_index].memory;
    memory->total = memory->total < most ? memory->total : most;
    memory->used = processes > counted ? processes : counted;
    if (memory->used > memory->total)
        memory->used = memory->total;
    memory->free = memory->total - memory->used;
}

WRAP(nvmlDeviceGetMemoryInfo, nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t result = real_nvmlDeviceGetMemoryInfo(device, memory);
    const int slice_index = result ? -1 : nvml_slice_index(device);
    if (slice_index >= 0)
        memory_of_slice(device, slice_index, memory);
    return result;
}

/* The driver's own reservation is not part of a slice. */
WRAP(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t result = real_nvmlDeviceGetMemoryInfo_v2(device, memory);
    const int slice_index = result ? -1 : nvml_slice_index(device);
    if (slice_index >= 0) {
        nvmlMemory_t seen = {.total = memory->total};
        memory_of_slice(device, slice_index, &seen);
        memory->total = seen.total;
        memory->reserved = 0;
        memory->free = seen.free;
        memory->used = seen.used;
    }
    return result;
}

HOOKS(nvml_memory,
    HOOK(nvmlDeviceGetMemoryInfo),
    HOOK(nvmlDeviceGetMemoryInfo_v2))
