/* What the driver tells about processes to a caller in a PID namespace of its own, as sessions have one. */
#ifndef SLIPWAY_NVML_DRIVER_H
#define SLIPWAY_NVML_DRIVER_H

/* PIDs that are translated into the caller's namespace; those that are not are the host's and say nothing
 * here. */
enum nvml_pids {
    NVML_PIDS_OF_LISTS,   /* in lists of processes; those of other namespaces are left out */
    NVML_PIDS_OF_MEMORY,  /* in looking up a process's memory, without which it is 0 in these lists */
    NVML_PIDS_OF_SAMPLES, /* in samples of utilisation; those of other namespaces stay the host's */
};

int nvml_translates(enum nvml_pids pids);

#endif
