/* How busy the session's processes keep a GPU, in percent of the session's share, at most 100: a session that
 * uses all of its share shows 100 %, as on a GPU of its own. */
#ifndef SLIPWAY_NVML_SAMPLES_H
#define SLIPWAY_NVML_SAMPLES_H

#include "nvml_abi.h"

/* Of the whole session by root's watchdog; -1 where that is not known. */
int nvml_session_busy(int slice_index);
/* Percent of the whole GPU's time that the session used, likewise. */
int nvml_session_gpu_busy(int slice_index);

/* Samples of the session's processes that are newer than `since` (microseconds): the driver's if it tells PIDs
 * of the session's PID namespace, else made of root's figure. *samples is the caller's to free, also after
 * an error; NVML_ERROR_NOT_FOUND where there is none. */
nvmlReturn_t nvml_own_samples(nvmlDevice_t device, int slice_index,
                              nvmlProcessUtilizationSample_t **samples, unsigned int *count,
                              unsigned long long since);

struct nvml_rates {
    unsigned int gpu, memory;
};
/* The newest sample of each process, added up. */
struct nvml_rates nvml_newest(const nvmlProcessUtilizationSample_t *samples, unsigned int count);

#endif
