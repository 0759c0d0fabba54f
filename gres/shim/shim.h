/* What the parts of the shim share.
 *
 * The shim stands in for libcuda.so.1 and libnvidia-ml.so.1 inside a container. Each of the two
 * names the real library as its dependency (by an absolute path, SLIPWAY_DRIVER), so whatever is
 * not wrapped here is found there by the dynamic linker itself.
 *
 * Root decides the slice. It writes SLIPWAY_SLICE, which nobody else may write:
 *
 *     version=1
 *     compute=limiter            limiter, mps or none
 *     gpu=GPU-6ab0...            one block of three lines for each GPU of the job, in Slurm's order
 *     memory=2147483648          bytes; 0 is a whole GPU, which has no limit
 *     sm=25                      percent of the multiprocessors; 100 is no limit
 *
 * and makes SLIPWAY_COUNTERS (SLIPWAY_COUNTERS_SIZE zero bytes, owned by the job's user), in which
 * all processes of the session count together (ledger.c).
 */
#ifndef SLIPWAY_SHIM_H
#define SLIPWAY_SHIM_H

#include <stdint.h>
#include <sys/types.h>

#ifndef SLIPWAY_DIRECTORY /* the tests build with another one */
#define SLIPWAY_DIRECTORY "/opt/slipway-gpu"
#endif
#define SLIPWAY_SLICE SLIPWAY_DIRECTORY "/slice"
#define SLIPWAY_COUNTERS SLIPWAY_DIRECTORY "/counters"
#define SLIPWAY_DRIVER SLIPWAY_DIRECTORY "/driver"
#define SLIPWAY_COUNTERS_SIZE (1 << 20)
#define SLIPWAY_MAX_DEVICES 16
#define SLIPWAY_LIMITER_OFFSET (32 << 10) /* of the counters, the limiter's own part: it maps it itself */
#define SLIPWAY_LIMITER_SIZE (32 << 10)

enum compute { COMPUTE_LIMITER, COMPUTE_MPS, COMPUTE_NONE };

struct slice_device {
    char uuid[64];
    uint64_t memory;
    int sm_percent;
};

struct slice {
    enum compute compute;
    int count;
    struct slice_device device[SLIPWAY_MAX_DEVICES];
};

/* slice.c: read once; a slice that cannot be read ends the process with a line that says so, since
 * going on would mean going on without limits. */
const struct slice *slice(void);
/* Index into slice()->device, or -1 for a GPU that is not the job's. */
int slice_find(const char *uuid);

/* ledger.c: bytes held by all processes of the session, for each device. What a dead process held is
 * taken back by whoever looks next. Safe in threads, after fork, and against kill -9 at any line. */
int ledger_reserve(int device, uint64_t bytes); /* 0, or -1 when the slice has no room for it */
void ledger_charge(int device, uint64_t bytes); /* what the driver has taken already, room or not */
void ledger_release(int device, uint64_t bytes);
uint64_t ledger_used(int device);
struct ledger_process {
    pid_t pid; /* in the PID namespace of whoever asks; 0 where it is in none of its own */
    uint64_t bytes;
};
/* All living processes that have ever counted, also those that hold nothing on this device now. */
int ledger_processes(int device, struct ledger_process *found, int most);

/* One wrapped function. The tables of all parts are searched by name for dlsym-like look-ups, and by
 * the real function's address after cuGetProcAddress, so that no version is ever guessed. */
struct hook {
    const char *name;  /* as exported by the real library, such as "cuMemAlloc_v2" */
    void *wrapper;     /* NULL: only called by the shim itself, not wrapped */
    void **real;       /* filled in before the wrapper is ever called */
};
/* Each table ends with a null name. */
extern const struct hook memory_hooks[];  /* cuda_memory.c */
extern const struct hook array_hooks[];   /* cuda_arrays.c */
extern const struct hook pool_hooks[];    /* cuda_pools.c */
extern const struct hook async_hooks[];   /* cuda_async.c */
extern const struct hook vmm_hooks[];     /* cuda_vmm.c */
extern const struct hook graph_hooks[];   /* cuda_graphs.c */
extern const struct hook need_hooks[];    /* cuda_needs.c */
extern const struct hook device_hooks[];  /* cuda_device.c */
extern const struct hook context_hooks[]; /* cuda_context.c */
extern const struct hook report_hooks[];  /* cuda_report.c */
extern const struct hook launch_hooks[];  /* cuda_launch.c */

/* real.c: the real library's function; NULL where this driver has none of the name. */
void *real_function(const char *name);
/* Fills in the real functions of a table. What this driver does not have answers "not supported". */
void real_fill(const struct hook *table);

/* cuda_device.c: the slice's index of the calling thread's current device. */
#define DEVICE_NONE (-1)    /* no context: the call goes to the driver, which says so itself */
#define DEVICE_FOREIGN (-2) /* a GPU that is not the job's: the ledger refuses */
int current_device(void);

/* cuda_graphs.c, for cuGraphLaunch in cuda_launch.c: the memory that a graph allocates is taken when it
 * is launched. CUDA_SUCCESS (0) or CUDA_ERROR_OUT_OF_MEMORY (2); `after` follows every `before` that
 * succeeded, whatever the launch answered. */
int graph_memory_before(void *executable);
void graph_memory_after(void *executable);

/* limiter.c, called by cuda_context.c, which wraps the ends of contexts and all waiting for the GPU. */
void limiter_look(void);
void limiter_forget(int cuda_device);

#endif
