/* What the parts of the stand-in libnvidia-ml.so.1 share. */
#ifndef STANDIN_NVML_USE_H
#define STANDIN_NVML_USE_H

#include "nvml.h"
#include "state.h"

/* nvml.c */
nvmlReturn_t nvml_gpu(nvmlDevice_t device, int *gpu);

/* nvml_pids.c: which PID a process has for the caller, which depends on the driver's branch. */
struct branch {
    int number, cuda;
    const char *version;
    bool lists, memory, samples; /* what is translated into the caller's PID namespace */
};

struct process {
    int slot;
    pid_t own; /* its PID as the caller sees it; 0 outside of the caller's namespace */
    unsigned host; /* its PID on the host */
    unsigned long long bytes;
};

const struct branch *nvml_branch(void);
unsigned nvml_listed_pid(const struct process *process); /* in lists; 0 for a process that has no line */
unsigned nvml_sampled_pid(const struct process *process); /* in samples of utilisation */
/* The memory of the process that the driver finds by such a PID; 0 for none. */
unsigned long long nvml_memory_of(const struct process *all, int number, unsigned pid);

/* nvml_processes.c */
int nvml_all_processes(int gpu, struct process *found); /* STANDIN_SLOTS at most */

/* One line of a list of processes. */
struct listed {
    unsigned pid;
    unsigned long long bytes;
};
int nvml_listed(int gpu, struct listed *found);

/* nvml_utilization.c */
unsigned nvml_busy_percent(int gpu, unsigned seconds); /* of all processes together, so long ago */

struct sample {
    unsigned pid, percent;
    unsigned long long time; /* microseconds */
};
#define STANDIN_SAMPLES (STANDIN_SLOTS * 4)
int nvml_samples(int gpu, unsigned long long since, struct sample *found);

#endif
