/* The stand-in libnvidia-ml.so.1: who uses a GPU. */
#define _GNU_SOURCE
#include "nvml_use.h"

#include <time.h>

struct process {
    pid_t pid; /* as the caller sees it; one of another PID namespace is 0 */
    unsigned long long bytes;
    unsigned percent;
};

static int processes(int gpu, struct process *found)
{
    const uint64_t now = state_now();
    int number = 0;
    state_lock();
    state_used(gpu); /* clears what the dead have left */
    for (int i = 0; i < STANDIN_SLOTS; i++) {
        const struct slot *slot = &state()->slots[i];
        pid_t pid;
        if (slot->bytes[gpu] && state_owner(i, &pid))
            found[number++] = (struct process){pid, slot->bytes[gpu],
                                               (unsigned)state_busy_percent(slot, gpu, now)};
    }
    state_unlock();
    return number;
}

unsigned nvml_busy_percent(int gpu)
{
    struct process found[STANDIN_SLOTS];
    unsigned percent = 0;
    for (int i = processes(gpu, found) - 1; i >= 0; i--)
        percent += found[i].percent;
    return percent > 100 ? 100 : percent;
}

/* NVML's rule for lists: the number is always told, the entries only where all of them have room. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned *count, const void *room,
                         struct process *found)
{
    int gpu;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    if (result)
        return result;
    const unsigned number = (unsigned)processes(gpu, found), most = room ? *count : 0;
    *count = number;
    return number > most ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* --- running processes: here all of them compute, without MPS ------------------------------------------ */

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_t *infos)
{
    struct process found[STANDIN_SLOTS];
    nvmlReturn_t result = list(device, count, infos, found);
    for (unsigned i = 0; !result && i < *count; i++)
        infos[i] = (nvmlProcessInfo_t){(unsigned)found[i].pid, found[i].bytes, ~0u, ~0u};
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
    struct process found[STANDIN_SLOTS];
    nvmlReturn_t result = list(device, count, infos, found);
    for (unsigned i = 0; !result && i < *count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){(unsigned)found[i].pid, found[i].bytes};
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
    struct process found[STANDIN_SLOTS];
    if (wanted->version != NVML_VERSION(nvmlProcessDetailList_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (wanted->mode) /* graphics or MPS */
        return none(device, &wanted->numProcArrayEntries);
    nvmlReturn_t result = list(device, &wanted->numProcArrayEntries, wanted->procArray, found);
    for (unsigned i = 0; !result && i < wanted->numProcArrayEntries; i++)
        wanted->procArray[i] =
            (nvmlProcessDetail_v1_t){(unsigned)found[i].pid, found[i].bytes, ~0u, ~0u, 0};
    return result;
}

/* --- utilisation, over the last second ----------------------------------------------------------------- */

static unsigned long long microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000ull + (unsigned long long)now.tv_nsec / 1000;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                    nvmlProcessUtilizationSample_t *samples,
                                                    unsigned *count, unsigned long long since)
{
    struct process found[STANDIN_SLOTS];
    const unsigned long long now = microseconds();
    nvmlReturn_t result = list(device, count, samples, found);
    if (!result && (!*count || since >= now))
        return NVML_ERROR_NOT_FOUND;
    for (unsigned i = 0; !result && i < *count; i++)
        samples[i] = (nvmlProcessUtilizationSample_t){(unsigned)found[i].pid, now,
                                                      found[i].percent, 0, 0, 0};
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                          nvmlProcessesUtilizationInfo_v1_t *wanted)
{
    struct process found[STANDIN_SLOTS];
    const unsigned long long now = microseconds();
    if (wanted->version != NVML_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t result = list(device, &wanted->processSamplesCount, wanted->procUtilArray, found);
    if (!result && !wanted->processSamplesCount)
        return NVML_ERROR_NOT_FOUND;
    for (unsigned i = 0; !result && i < wanted->processSamplesCount; i++)
        wanted->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .timeStamp = now, .pid = (unsigned)found[i].pid, .smUtil = found[i].percent};
    return result;
}
