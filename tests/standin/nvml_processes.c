/* The stand-in libnvidia-ml.so.1: who uses a GPU. */
#define _GNU_SOURCE
#include "nvml_use.h"

int nvml_all_processes(int gpu, struct process *found)
{
    int number = 0;
    state_lock();
    state_used(gpu); /* clears what the dead have left */
    for (int i = 0; i < STANDIN_SLOTS; i++) {
        const struct slot *slot = &state()->slots[i];
        pid_t pid;
        if (slot->bytes[gpu] && state_owner(i, &pid))
            found[number++] = (struct process){i, pid, slot->host_pid,
                                              slot->bytes[gpu] - (uint64_t)slot->not_told[gpu]};
    }
    state_unlock();
    return number;
}

/* First which PIDs there are, then the memory of each: so the driver does it, too. */
int nvml_listed(int gpu, struct listed *found)
{
    struct process all[STANDIN_SLOTS];
    const int number = nvml_all_processes(gpu, all);
    int listed = 0;
    for (int i = 0; i < number; i++) {
        const unsigned pid = nvml_listed_pid(&all[i]);
        if (pid)
            found[listed++] = (struct listed){pid, nvml_memory_of(all, number, pid)};
    }
    return listed;
}

/* NVML's rule for lists: the number is always told, the entries only where all of them have room. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned *count, const void *room,
                         struct listed *found)
{
    int gpu;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    if (result)
        return result;
    const unsigned number = (unsigned)nvml_listed(gpu, found), most = room ? *count : 0;
    *count = number;
    return number > most ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* --- running processes: here all of them compute, without MPS ------------------------------------------ */

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_t *infos)
{
    struct listed found[STANDIN_SLOTS];
    nvmlReturn_t result = list(device, count, infos, found);
    for (unsigned i = 0; !result && i < *count; i++)
        infos[i] = (nvmlProcessInfo_t){found[i].pid, found[i].bytes, ~0u, ~0u};
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_t *infos)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count,
                                                         nvmlProcessInfo_v1_t *infos)
{
    struct listed found[STANDIN_SLOTS];
    nvmlReturn_t result = list(device, count, infos, found);
    for (unsigned i = 0; !result && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){found[i].pid, found[i].bytes};
    return result;
}

static nvmlReturn_t none(nvmlDevice_t device, unsigned *count)
{
    int gpu;
    *count = 0;
    return nvml_gpu(device, &gpu);
}

#define NO_PROCESSES(name)                                                                         \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *count, void *infos)                    \
    {                                                                                              \
        (void)infos;                                                                               \
        return none(device, count);                                                                \
    }

NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                          nvmlProcessDetailList_v1_t *wanted)
{
    struct listed found[STANDIN_SLOTS];
    if (wanted->version != NVML_VERSION(nvmlProcessDetailList_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (wanted->mode) /* graphics or MPS */
        return none(device, &wanted->numProcArrayEntries);
    nvmlReturn_t result = list(device, &wanted->numProcArrayEntries, wanted->procArray, found);
    for (unsigned i = 0; !result && i < wanted->numProcArrayEntries; i++)
        wanted->procArray[i] =
            (nvmlProcessDetail_v1_t){found[i].pid, found[i].bytes, ~0u, ~0u, 0};
    return result;
}
