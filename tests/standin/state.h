/* The "GPUs" of the stand-in driver: one regular file that all processes of a node map.
 *
 * A process has a slot as long as it holds a POSIX lock on the slot's byte. The kernel drops the
 * lock with the process, however it ends, and translates the holder's PID for whoever asks: so a
 * slot is never stale, and root sees the PIDs of processes in containers as a real driver does.
 */
#ifndef STANDIN_STATE_H
#define STANDIN_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef STANDIN_STATE /* the tests build with other paths */
#define STANDIN_STATE "/dev/nvidia-standin"
#endif
#ifndef STANDIN_DEVICE /* the number of the GPU is put behind it */
#define STANDIN_DEVICE "/dev/nvidia"
#endif

#define STANDIN_MAGIC 0x3150494c53545453ull
#define STANDIN_GPUS 8
#define STANDIN_SLOTS 256
#define STANDIN_MIB (1ull << 20)
#define STANDIN_CONTEXT (64 * STANDIN_MIB) /* what a context takes that no allocator asked for */
#define STANDIN_MEMORY (8192 * STANDIN_MIB + 4 * STANDIN_CONTEXT) /* what CUDA can give */
#define STANDIN_RESERVED (128 * STANDIN_MIB) /* what the driver keeps, which is in NVML's total */
#define STANDIN_MULTIPROCESSORS 16
#define STANDIN_BRANCH 580 /* of the driver, unless another one is set */
#define STANDIN_WINDOWS 64
#define STANDIN_WINDOW_NS 100000000ull

/* Time that a process kept a GPU busy, by tenths of a second, for figures of utilisation. */
struct window {
    uint64_t number;
    uint64_t busy;
};

struct slot {
    unsigned host_pid; /* the process's PID on the host, where it may differ from the caller's view */
    uint64_t bytes[STANDIN_GPUS];
    int64_t not_told[STANDIN_GPUS]; /* of them, what NVML's figure of the process lacks: managed memory */
    uint64_t linger, died; /* ns for which the memory outlives the process, and when that was first seen */
    uint64_t busy[STANDIN_GPUS]; /* nanoseconds */
    struct window windows[STANDIN_GPUS][STANDIN_WINDOWS];
};

struct gpu {
    uint64_t memory; /* without what the driver keeps */
    uint64_t free_at; /* when the work that has been given to it is done (CLOCK_MONOTONIC, ns) */
    uint64_t busy;
    char name[64];
    char uuid[48];
};

struct state {
    uint64_t magic;
    uint64_t host; /* the PID namespace in which the state was made */
    int branch; /* of the driver: 535, 550, …; 0 is STANDIN_BRANCH */
    bool no_persistence;
    int count;
    struct gpu gpus[STANDIN_GPUS];
    struct slot slots[STANDIN_SLOTS];
};

/* The shared state; NULL where there is no such driver: `standin reset` makes the file. */
struct state *state(void);
/* Held for a few instructions; the kernel lets go of it when the holder dies. */
void state_lock(void);
void state_unlock(void);
void state_reset(int count, uint64_t memory); /* only while nothing runs */

/* Whether this process may open the GPU's device file; ENXIO is what a file without driver says. */
bool state_visible(int gpu);

int state_own_slot(void); /* takes one; -1 when all are taken */
/* Whether a living process has the slot; its PID as the caller sees it, 0 from outside. */
bool state_owner(int slot, pid_t *pid);

/* The driver's branch: STANDIN_DRIVER in the process's environment, or what `standin set` said. */
int state_branch(void);
bool state_on_host(void); /* whether this process is in the host's PID namespace */

/* All of these with the state locked. */
uint64_t state_used(int gpu);
/* Over one second that ended so many seconds before the last whole window; 0 for the last one. */
int state_busy_percent(const struct slot *slot, int gpu, uint64_t now, unsigned seconds);
void state_add_busy(int gpu, uint64_t start, uint64_t length);

uint64_t state_now(void);

#endif
