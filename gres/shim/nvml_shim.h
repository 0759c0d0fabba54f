/* What the wrappers of libnvidia-ml share. */
#ifndef SLIPWAY_NVML_SHIM_H
#define SLIPWAY_NVML_SHIM_H

#include <stddef.h>

#include "nvml_abi.h"
#include "shim.h"

/* As in cuda_shim.h: WRAP(name, parameters) { body } defines the exported function and `real_name`. */
#define EXPORT __attribute__((visibility("default")))
#define WRAP(name, ...)                                                                             \
    static nvmlReturn_t (*real_##name)(__VA_ARGS__);                                                \
    EXPORT nvmlReturn_t name(__VA_ARGS__);                                                          \
    EXPORT nvmlReturn_t name(__VA_ARGS__)
#define NEEDS(name, ...) static nvmlReturn_t (*real_##name)(__VA_ARGS__)
#define HOOK(name) {#name, (void *)(name), (void **)&real_##name}
#define NEEDED(name) {#name, NULL, (void **)&real_##name}
#define HOOKS_END {NULL, NULL, NULL}

/* One process of the session, by the ledger and by the driver. */
struct nvml_process {
    unsigned int pid;
    nvmlBytes bytes;
};
#define NVML_MOST 1024 /* processes of a session on one GPU that can be shown */

/* nvml.c: the slice's index of a GPU of which the session has a part; -1 where the driver's own answer
 * stands (a whole GPU, a MIG device, or a handle that is none). */
int nvml_part(nvmlDevice_t device);

/* nvml_processes.c: the session's processes on a GPU, with the ledger's bytes or the driver's where
 * those are more (contexts and code are the driver's to know). */
int nvml_own_processes(nvmlDevice_t device, int part, struct nvml_process *found);
/* Whether the PID, as the driver says it, is the session's. */
int nvml_is_own(int part, unsigned int pid);

extern const struct hook nvml_device_hooks[];      /* nvml.c */
extern const struct hook nvml_process_hooks[];     /* nvml_processes.c */
extern const struct hook nvml_utilization_hooks[]; /* nvml_utilization.c */

#endif
