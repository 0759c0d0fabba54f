/* Processes that use a GPU. */
#ifndef SLIPWAY_NVML_PROCESSES_H
#define SLIPWAY_NVML_PROCESSES_H

#include "nvml_abi.h"

#define NVML_MOST 1024 /* processes of a session on one GPU that can be shown */

/* One process of the session, by the ledger and by the driver. */
struct nvml_process {
    unsigned int pid;
    nvmlBytes bytes;
};

/* The session's processes on a GPU (NVML_MOST at most), for the caller to free; their number, or -1 without
 * memory for them. Bytes are the ledger's, or the driver's if those are more: only the driver knows the size
 * of contexts and code. */
int nvml_own_processes(nvmlDevice_t device, int slice_index, struct nvml_process **found);
/* Whether the PID, as the driver reports it, is one of the session's. */
int nvml_is_own(int slice_index, unsigned int pid);

#endif
