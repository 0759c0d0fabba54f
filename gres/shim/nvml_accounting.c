/* NVML's accounting of processes, where an administrator has turned it on: it keeps the host's PIDs, which say
 * nothing in the session, and figures of all users. If the session has a part of the GPU it is shown as turned
 * off; Slipway's own figures of a job are in the portal. */
#include "nvml_devices.h"
#include "nvml_wrap.h"

WRAP(nvmlDeviceGetAccountingMode, nvmlDevice_t device, int *mode)
{
    nvmlReturn_t result = real_nvmlDeviceGetAccountingMode(device, mode);
    if (!result && nvml_slice_index(device) >= 0)
        *mode = 0; /* disabled */
    return result;
}

WRAP(nvmlDeviceGetAccountingPids, nvmlDevice_t device, unsigned int *count, unsigned int *pids)
{
    return nvml_slice_index(device) >= 0 ? NVML_ERROR_NOT_SUPPORTED
                                         : real_nvmlDeviceGetAccountingPids(device, count, pids);
}

WRAP(nvmlDeviceGetAccountingStats, nvmlDevice_t device, unsigned int pid, void *stats)
{
    return nvml_slice_index(device) >= 0 ? NVML_ERROR_NOT_SUPPORTED
                                         : real_nvmlDeviceGetAccountingStats(device, pid, stats);
}

/* Since CUDA 13: the PID is in the structure. */
WRAP(nvmlDeviceGetAccountingStats_v2, nvmlDevice_t device, void *stats)
{
    return nvml_slice_index(device) >= 0 ? NVML_ERROR_NOT_SUPPORTED
                                         : real_nvmlDeviceGetAccountingStats_v2(device, stats);
}

HOOKS(nvml_accounting,
    HOOK(nvmlDeviceGetAccountingMode),
    HOOK(nvmlDeviceGetAccountingPids),
    HOOK(nvmlDeviceGetAccountingStats),
    HOOK(nvmlDeviceGetAccountingStats_v2))
