/* Utilisation of a GPU. If the session has a part of it, in percent of that part, at most 100: a session
 * that uses all of its share shows 100 %, as on a GPU of its own, and neighbours are not shown. Figures of
 * memory, encoder and decoder are unchanged, since those are not shared out. */
#include "nvml_devices.h"
#include "nvml_processes.h"
#include "nvml_wrap.h"
#include "slice.h"

#include <stdlib.h>

static unsigned int of_share(unsigned int percent, int slice_index)
{
    const unsigned int scaled =
        percent * 100 / (unsigned int)slice()->device[slice_index].sm_percent;
    return scaled < 100 ? scaled : 100;
}

/* --- samples of processes ---------------------------------------------------------------------------- */

static nvmlReturn_t (*real_samples)(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                    unsigned int *count, unsigned long long since);

/* All of the driver's samples; *samples is the caller's to free. */
static nvmlReturn_t all_samples(nvmlDevice_t device, nvmlProcessUtilizationSample_t **samples,
                                unsigned int *count, unsigned long long since)
{
    *count = 0;
    *samples = NULL;
    nvmlReturn_t result = real_samples(device, NULL, count, since);
    if (result != NVML_ERROR_INSUFFICIENT_SIZE)
        return result;
    *count += 64; /* new ones may appear in between */
    *samples = calloc(*count, sizeof **samples);
    return *samples ? real_samples(device, *samples, count, since) : NVML_ERROR_MEMORY;
}

static unsigned int keep_own(nvmlProcessUtilizationSample_t *samples, unsigned int count,
                             int slice_index)
{
    unsigned int kept = 0;
    for (unsigned int index = 0; index < count; index++)
        if (nvml_is_own(slice_index, samples[index].pid)) {
            samples[kept] = samples[index];
            samples[kept].smUtil = of_share(samples[kept].smUtil, slice_index);
            kept++;
        }
    return kept;
}

static nvmlReturn_t own_samples(nvmlDevice_t device, int slice_index,
                                nvmlProcessUtilizationSample_t **samples, unsigned int *count,
                                unsigned long long since)
{
    nvmlReturn_t result = all_samples(device, samples, count, since);
    if (!result)
        *count = keep_own(*samples, *count, slice_index);
    return !result && !*count ? NVML_ERROR_NOT_FOUND : result;
}

WRAP(nvmlDeviceGetProcessUtilization, nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
     unsigned int *count, unsigned long long since)
{
    nvmlProcessUtilizationSample_t *own;
    unsigned int number;
    const int slice_index = count ? nvml_slice_index(device) : -1;
    if (slice_index < 0)
        return real_nvmlDeviceGetProcessUtilization(device, samples, count, since);
    nvmlReturn_t result = own_samples(device, slice_index, &own, &number, since);
    if (!result && (!samples || *count < number))
        result = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int index = 0; !result && index < number; index++)
        samples[index] = own[index];
    if (!result || result == NVML_ERROR_INSUFFICIENT_SIZE)
        *count = number;
    free(own);
    return result;
}

/* The same samples in a newer structure; its two further engines are reported as 0. */
WRAP(nvmlDeviceGetProcessesUtilizationInfo, nvmlDevice_t device,
     nvmlProcessesUtilizationInfo_v1_t *list)
{
    nvmlProcessUtilizationSample_t *own;
    unsigned int number;
    const int slice_index = list ? nvml_slice_index(device) : -1;
    if (slice_index < 0)
        return real_nvmlDeviceGetProcessesUtilizationInfo(device, list);
    nvmlProcessesUtilizationInfo_v1_t asked = {.version = list->version,
                                               .lastSeenTimeStamp = list->lastSeenTimeStamp};
    nvmlReturn_t result = real_nvmlDeviceGetProcessesUtilizationInfo(device, &asked);
    if (result && result != NVML_ERROR_INSUFFICIENT_SIZE)
        return result; /* a version that this driver does not know, or nothing since then */
    result = own_samples(device, slice_index, &own, &number, list->lastSeenTimeStamp);
    if (!result && (!list->procUtilArray || list->processSamplesCount < number))
        result = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int index = 0; !result && index < number; index++)
        list->procUtilArray[index] = (nvmlProcessUtilizationInfo_v1_t){
            own[index].timeStamp, own[index].pid,     own[index].smUtil, own[index].memUtil,
            own[index].encUtil,   own[index].decUtil, 0,                 0};
    if (!result || result == NVML_ERROR_INSUFFICIENT_SIZE)
        list->processSamplesCount = number;
    free(own);
    return result;
}

/* --- the GPU as one -------------------------------------------------------------------------------- */

struct sums {
    unsigned int gpu, memory;
};

/* The newest sample of each of the session's processes, added up. */
static struct sums newest(const nvmlProcessUtilizationSample_t *samples, unsigned int count)
{
    struct sums sums = {0, 0};
    for (unsigned int index = 0; index < count; index++) {
        int older = 0;
        for (unsigned int other = 0; other < count && !older; other++)
            older = samples[other].pid == samples[index].pid &&
                    (samples[other].timeStamp > samples[index].timeStamp ||
                     (samples[other].timeStamp == samples[index].timeStamp && other > index));
        if (!older) {
            sums.gpu += samples[index].smUtil;
            sums.memory += samples[index].memUtil;
        }
    }
    return sums;
}

static unsigned int capped(unsigned int percent)
{
    return percent < 100 ? percent : 100;
}

WRAP(nvmlDeviceGetUtilizationRates, nvmlDevice_t device, nvmlUtilization_t *rates)
{
    nvmlProcessUtilizationSample_t *own;
    unsigned int count;
    nvmlUtilization_t whole;
    nvmlReturn_t result = real_nvmlDeviceGetUtilizationRates(device, rates ? &whole : NULL);
    const int slice_index = result ? -1 : nvml_slice_index(device);
    if (result || slice_index < 0) {
        if (!result)
            *rates = whole;
        return result;
    }
    result = own_samples(device, slice_index, &own, &count, 0);
    if (!result) {
        const struct sums sums = newest(own, count);
        *rates = (nvmlUtilization_t){capped(sums.gpu), capped(sums.memory)};
    } else if (result == NVML_ERROR_NOT_FOUND) { /* the session does not use the GPU */
        *rates = (nvmlUtilization_t){0, 0};
        result = NVML_SUCCESS;
    }
    free(own);
    return result;
}

HOOKS(
    {"nvmlDeviceGetProcessUtilization", NULL, (void **)&real_samples},
    HOOK(nvmlDeviceGetProcessUtilization),
    HOOK(nvmlDeviceGetProcessesUtilizationInfo),
    HOOK(nvmlDeviceGetUtilizationRates))
