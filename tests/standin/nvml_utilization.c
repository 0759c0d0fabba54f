/* The stand-in libnvidia-ml.so.1: how busy a GPU was, by samples of one second each, of which the driver
 * keeps some. Only processes that used the GPU in such a second have a sample of it. */
#define _GNU_SOURCE
#include "nvml_use.h"

#include <string.h>
#include <time.h>

#define KEPT 4 /* seconds; STANDIN_SAMPLES has room for them */

static unsigned long long realtime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}

/* When a sample ended, in microseconds of the clock that NVML uses, which showed `realtime` at `now`: read
 * once for all samples of an answer, so that those of one second have one time. */
static unsigned long long sample_time(unsigned long long realtime, uint64_t now, unsigned seconds)
{
    const uint64_t end = (now / STANDIN_WINDOW_NS - 10 * seconds) * STANDIN_WINDOW_NS;
    return (realtime - (now - end)) / 1000;
}

unsigned nvml_busy_percent(int gpu, unsigned seconds)
{
    struct process all[STANDIN_SLOTS];
    const int number = nvml_all_processes(gpu, all);
    const uint64_t now = state_now();
    unsigned percent = 0;
    state_lock();
    for (int i = 0; i < number; i++)
        percent += (unsigned)state_busy_percent(&state()->slots[all[i].slot], gpu, now, seconds);
    state_unlock();
    return percent > 100 ? 100 : percent;
}

int nvml_samples(int gpu, unsigned long long since, struct sample *found)
{
    struct process all[STANDIN_SLOTS];
    const int number = nvml_all_processes(gpu, all);
    const uint64_t now = state_now();
    const unsigned long long realtime = realtime_ns();
    int count = 0;
    state_lock();
    for (unsigned seconds = 0; seconds < KEPT && sample_time(realtime, now, seconds) > since; seconds++)
        for (int i = 0; i < number; i++) {
            const struct slot *slot = &state()->slots[all[i].slot];
            const int percent = state_busy_percent(slot, gpu, now, seconds);
            if (percent)
                found[count++] = (struct sample){nvml_sampled_pid(&all[i]), (unsigned)percent,
                                                 sample_time(realtime, now, seconds)};
        }
    state_unlock();
    return count;
}

/* --- by process ------------------------------------------------------------------------------------- */

static nvmlReturn_t list(nvmlDevice_t device, unsigned *count, const void *room,
                         unsigned long long since, struct sample *found)
{
    int gpu;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    if (result)
        return result;
    const unsigned number = (unsigned)nvml_samples(gpu, since, found), most = room ? *count : 0;
    if (!number)
        return NVML_ERROR_NOT_FOUND;
    *count = number;
    return number > most ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                    nvmlProcessUtilizationSample_t *samples,
                                                    unsigned *count, unsigned long long since)
{
    struct sample found[STANDIN_SAMPLES];
    nvmlReturn_t result = list(device, count, samples, since, found);
    for (unsigned i = 0; !result && i < *count; i++)
        samples[i] = (nvmlProcessUtilizationSample_t){
            .pid = found[i].pid, .timeStamp = found[i].time, .smUtil = found[i].percent};
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                          nvmlProcessesUtilizationInfo_v1_t *wanted)
{
    struct sample found[STANDIN_SAMPLES];
    if (wanted->version != NVML_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t result = list(device, &wanted->processSamplesCount, wanted->procUtilArray,
                               wanted->lastSeenTimeStamp, found);
    for (unsigned i = 0; !result && i < wanted->processSamplesCount; i++)
        wanted->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .timeStamp = found[i].time, .pid = found[i].pid, .smUtil = found[i].percent};
    return result;
}

/* --- of the whole GPU -------------------------------------------------------------------------------- */

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *found)
{
    int gpu;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    if (!result)
        *found = (nvmlUtilization_t){nvml_busy_percent(gpu, 0), nvml_busy_percent(gpu, 0) / 2};
    return result;
}

/* Without room for samples it tells how many there can be. */
EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, int type, unsigned long long since,
                                         int *value, unsigned *count, nvmlSample_t *samples)
{
    int gpu;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    if (result)
        return result;
    if (type != NVML_GPU_UTILIZATION_SAMPLES && type != NVML_MEMORY_UTILIZATION_SAMPLES)
        return NVML_ERROR_NOT_SUPPORTED;
    *value = NVML_VALUE_TYPE_UNSIGNED_INT;
    const unsigned room = samples ? *count : 0;
    const uint64_t now = state_now();
    const unsigned long long realtime = realtime_ns();
    *count = samples ? 0 : KEPT;
    for (unsigned seconds = KEPT; seconds-- > 0 && *count < room;)
        if (sample_time(realtime, now, seconds) > since) {
            const unsigned percent = nvml_busy_percent(gpu, seconds);
            samples[(*count)++] = (nvmlSample_t){
                sample_time(realtime, now, seconds),
                {.number = type == NVML_GPU_UTILIZATION_SAMPLES ? percent : percent / 2}};
        }
    return samples && !*count ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

/* --- accounting, which is on, as an administrator may have it ----------------------------------------- */

EXPORT nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, int *mode)
{
    int gpu;
    *mode = 1;
    return nvml_gpu(device, &gpu);
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned *size)
{
    int gpu;
    *size = STANDIN_SLOTS;
    return nvml_gpu(device, &gpu);
}

/* The host's PIDs, in containers, too. */
EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned *count, unsigned *pids)
{
    struct process all[STANDIN_SLOTS];
    int gpu;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    if (result)
        return result;
    const unsigned number = (unsigned)nvml_all_processes(gpu, all), most = pids ? *count : 0;
    *count = number;
    for (unsigned i = 0; i < number && number <= most; i++)
        pids[i] = all[i].host;
    return number > most ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid,
                                                 nvmlAccountingStats_t *stats)
{
    struct process all[STANDIN_SLOTS];
    int gpu;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    memset(stats, 0, sizeof *stats);
    for (int i = result ? -1 : nvml_all_processes(gpu, all) - 1; i >= 0; i--)
        if (all[i].host == pid) {
            stats->maxMemoryUsage = all[i].bytes;
            stats->isRunning = 1;
            return NVML_SUCCESS;
        }
    return result ? result : NVML_ERROR_NOT_FOUND;
}
