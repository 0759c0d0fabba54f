/* What the session may use of its GPUs, as root wrote it to SLIPWAY_SLICE:
 *
 *     version=1
 *     compute=limiter            limiter, mps or none
 *     gpu=GPU-6ab0...            one block of three lines for each GPU of the job, in Slurm's order
 *     memory=2147483648          bytes; 0 is a whole GPU, which has no limit
 *     sm=25                      percent of the multiprocessors; 100 is no limit
 */
#ifndef SLIPWAY_SLICE_H
#define SLIPWAY_SLICE_H

#include "shim.h"

#include <stdint.h>

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

/* Read once; a slice that cannot be read ends the process with a message, since continuing would mean to
 * run without limits. */
const struct slice *slice(void);
/* Index into slice()->device, or -1 for a GPU that is not the job's. */
int slice_find(const char *uuid);

#endif
