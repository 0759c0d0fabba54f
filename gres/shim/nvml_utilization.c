/* Utilisation of a GPU. If the session has a part of it, in percent of that part (nvml_samples.h), without its
 * neighbours. Figures of memory, encoder and decoder are not scaled, since those are not shared out. */
#include "nvml_devices.h"
#include "nvml_samples.h"
#include "nvml_wrap.h"

#include <stdlib.h>

/* --- by process ------------------------------------------------------------------------------------- */

WRAP(nvmlDeviceGetProcessUtilization, nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
     unsigned int *count, unsigned long long since)
{
    nvmlProcessUtilizationSample_t *own;
    unsigned int number;
    const int slice_index = count ? nvml_slice_index(device) : -1;
    if (slice_index < 0)
        return real_nvmlDeviceGetProcessUtilization(device, samples, count, since);
    nvmlReturn_t result = nvml_own_samples(device, slice_index, &own, &number, since);
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
    if (result && result != NVML_ERROR_INSUFFICIENT_SIZE && result != NVML_ERROR_NOT_FOUND)
        return result; /* a version that this driver does not know */
    result = nvml_own_samples(device, slice_index, &own, &number, list->lastSeenTimeStamp);
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

static unsigned int capped(unsigned int percent)
{
    return percent < 100 ? percent : 100;
}

/* The driver's figure of the whole GPU's memory in proportion to the session's part of the GPU's time. */
static unsigned int part_of_memory(const nvmlUtilization_t *whole, int slice_index)
{
    const int busy = nvml_session_gpu_busy(slice_index);
    return busy <= 0 || !whole->gpu ? 0
           : (unsigned int)busy >= whole->gpu ? whole->memory
                                              : whole->memory * (unsigned int)busy / whole->gpu;
}

/* Root's figure, which is right with every driver; without a watchdog the driver's samples. */
static nvmlReturn_t session_rates(nvmlDevice_t device, int slice_index, const nvmlUtilization_t *whole,
                                  nvmlUtilization_t *rates)
{
    nvmlProcessUtilizationSample_t *own;
    unsigned int count;
    const int busy = nvml_session_busy(slice_index);
    if (busy >= 0) {
        *rates = (nvmlUtilization_t){(unsigned int)busy, part_of_memory(whole, slice_index)};
        return NVML_SUCCESS;
    }
    nvmlReturn_t result = nvml_own_samples(device, slice_index, &own, &count, 0);
    if (!result) {
        const struct nvml_rates sums = nvml_newest(own, count);
        *rates = (nvmlUtilization_t){capped(sums.gpu), capped(sums.memory)};
    } else if (result == NVML_ERROR_NOT_FOUND) { /* the session does not use the GPU */
        *rates = (nvmlUtilization_t){0, 0};
        result = NVML_SUCCESS;
    }
    free(own);
    return result;
}

WRAP(nvmlDeviceGetUtilizationRates, nvmlDevice_t device, nvmlUtilization_t *rates)
{
    nvmlUtilization_t whole;
    nvmlReturn_t result = real_nvmlDeviceGetUtilizationRates(device, rates ? &whole : NULL);
    const int slice_index = result ? -1 : nvml_slice_index(device);
    if (result)
        return result;
    if (slice_index >= 0)
        return session_rates(device, slice_index, &whole, rates);
    *rates = whole;
    return NVML_SUCCESS;
}

/* The driver's samples are of the whole GPU; of the session there is one, the present one. */
WRAP(nvmlDeviceGetSamples, nvmlDevice_t device, int type, unsigned long long since, int *value,
     unsigned int *count, nvmlSample_t *samples)
{
    nvmlUtilization_t rates;
    const int shared = type == NVML_GPU_UTILIZATION_SAMPLES || type == NVML_MEMORY_UTILIZATION_SAMPLES;
    const int slice_index = shared && count ? nvml_slice_index(device) : -1;
    if (slice_index < 0 || !samples || !*count)
        return real_nvmlDeviceGetSamples(device, type, since, value, count, samples);
    nvmlSample_t *all = calloc(*count, sizeof *all);
    nvmlReturn_t result =
        all ? real_nvmlDeviceGetSamples(device, type, since, value, count, all) : NVML_ERROR_MEMORY;
    if (!result)
        result = nvmlDeviceGetUtilizationRates(device, &rates);
    if (!result && *count) {
        samples[0] = (nvmlSample_t){
            all[*count - 1].timeStamp,
            {.number = type == NVML_GPU_UTILIZATION_SAMPLES ? rates.gpu : rates.memory}};
        *count = 1;
    }
    free(all);
    return result;
}

HOOKS(nvml_utilization,
    HOOK(nvmlDeviceGetProcessUtilization),
    HOOK(nvmlDeviceGetProcessesUtilizationInfo),
    HOOK(nvmlDeviceGetUtilizationRates),
    HOOK(nvmlDeviceGetSamples))
