#include "nvml_samples.h"

#include "clock.h"
#include "ledger.h"
#include "load.h"
#include "nvml_driver.h"
#include "nvml_processes.h"
#include "nvml_wrap.h"
#include "slice.h"

#include <stdlib.h>
#include <time.h>

/* Points of percent by which samples of the last second may exceed root's figure, which is up to two seconds
 * older. */
#define TOLERANCE 25

static nvmlReturn_t (*real_samples)(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                    unsigned int *count, unsigned long long since);

/* --- root's figure ---------------------------------------------------------------------------------- */

static int share_of(int tenths, int slice_index)
{
    const int percent = (tenths * 10 + slice()->device[slice_index].sm_percent / 2) /
                        slice()->device[slice_index].sm_percent;
    return percent < 100 ? percent : 100;
}

int nvml_session_busy(int slice_index)
{
    struct load load;
    return load_of(slice_index, &load) || load.busy < 0 ? -1 : share_of(load.busy, slice_index);
}

int nvml_session_gpu_busy(int slice_index)
{
    struct load load;
    return load_of(slice_index, &load) || load.busy < 0 ? -1 : (load.busy + 5) / 10;
}

/* Microseconds of the clock that NVML's time stamps are of. */
static unsigned long long realtime_of(int64_t monotonic)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t realtime = (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    return (unsigned long long)((realtime - (clock_now() - monotonic)) / 1000);
}

static void divide(const struct load *load, int slice_index, const struct nvml_process *own, int number,
                   nvmlProcessUtilizationSample_t *samples)
{
    for (int index = 0; index < number; index++)
        samples[index] = (nvmlProcessUtilizationSample_t){
            .pid = own[index].pid,
            .timeStamp = realtime_of(load->time),
            .smUtil = (unsigned int)share_of(load->busy / number, slice_index)};
}

/* Root's file tells what the session uses, not each of its processes: it is divided by them equally. */
static nvmlReturn_t divided(nvmlDevice_t device, int slice_index, nvmlProcessUtilizationSample_t **samples,
                            unsigned int *count, unsigned long long since)
{
    struct nvml_process *own;
    struct load load;
    nvmlReturn_t result = NVML_ERROR_NOT_FOUND;
    const int number = nvml_own_processes(device, slice_index, &own);
    if (!load_of(slice_index, &load) && load.busy > 0 && number > 0 && realtime_of(load.time) > since) {
        *samples = calloc((size_t)number, sizeof **samples);
        result = *samples ? NVML_SUCCESS : NVML_ERROR_MEMORY;
    }
    if (!result) {
        *count = (unsigned int)number;
        divide(&load, slice_index, own, number, *samples);
    }
    free(own);
    return result;
}

/* --- the driver's samples --------------------------------------------------------------------------- */

/* All of them, with percents of the whole GPU. */
static nvmlReturn_t all_samples(nvmlDevice_t device, nvmlProcessUtilizationSample_t **samples,
                                unsigned int *count, unsigned long long since)
{
    *count = 0;
    nvmlReturn_t result = real_samples(device, NULL, count, since);
    if (result != NVML_ERROR_INSUFFICIENT_SIZE)
        return result;
    *count += 64; /* new ones may appear in between */
    *samples = calloc(*count, sizeof **samples);
    return *samples ? real_samples(device, *samples, count, since) : NVML_ERROR_MEMORY;
}

static unsigned int keep_own(nvmlProcessUtilizationSample_t *samples, unsigned int count, int slice_index)
{
    unsigned int kept = 0;
    for (unsigned int index = 0; index < count; index++)
        if (nvml_is_own(slice_index, samples[index].pid))
            samples[kept++] = samples[index];
    return kept;
}

struct nvml_rates nvml_newest(const nvmlProcessUtilizationSample_t *samples, unsigned int count)
{
    struct nvml_rates sums = {0, 0};
    for (unsigned int index = 0; index < count; index++) {
        int older = 0;
        for (unsigned int other = 0; other < count && !older; other++)
            older = samples[other].pid == samples[index].pid &&
                    samples[other].timeStamp > samples[index].timeStamp;
        if (!older) {
            sums.gpu += samples[index].smUtil;
            sums.memory += samples[index].memUtil;
        }
    }
    return sums;
}

/* A neighbour's sample has its PID on the host, which may be one of ours: then they sum up to more than root
 * has seen of this session. */
static int are_plausible(const nvmlProcessUtilizationSample_t *samples, unsigned int count, int slice_index)
{
    const int seen = nvml_session_gpu_busy(slice_index);
    return seen < 0 || nvml_newest(samples, count).gpu <= (unsigned int)(seen + TOLERANCE);
}

nvmlReturn_t nvml_own_samples(nvmlDevice_t device, int slice_index,
                              nvmlProcessUtilizationSample_t **samples, unsigned int *count,
                              unsigned long long since)
{
    *samples = NULL;
    if (!nvml_translates(NVML_PIDS_OF_SAMPLES))
        return divided(device, slice_index, samples, count, since);
    nvmlReturn_t result = all_samples(device, samples, count, since);
    if (result)
        return result;
    *count = keep_own(*samples, *count, slice_index);
    if (!are_plausible(*samples, *count, slice_index)) {
        free(*samples);
        *samples = NULL;
        return divided(device, slice_index, samples, count, since);
    }
    for (unsigned int index = 0; index < *count; index++)
        (*samples)[index].smUtil =
            (unsigned int)share_of((int)(*samples)[index].smUtil * 10, slice_index);
    return *count ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

HOOKS(nvml_samples, {"nvmlDeviceGetProcessUtilization", NULL, (void **)&real_samples})
