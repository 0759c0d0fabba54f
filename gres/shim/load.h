/* What the job uses of its GPUs at present, as root's watchdog writes it to SLIPWAY_LOAD at each of its polls,
 * about once a second (portal/node/gpu/watchdog/neighbours.py):
 *
 *     version=1
 *     time=123456789012        ns of CLOCK_MONOTONIC at which it was measured
 *     gpu=GPU-6ab0...          a block for each GPU of the job, in the slice's order
 *     busy=231                 tenths of a percent of the GPU's time; no such line where NVML does not tell
 *     memory=2147483648        bytes that the job's processes hold, by NVML
 *     charge=520               thousandths of measured time that the limiter charges; 1000 for a job alone
 *     percent=25               the job's share at present
 *
 * Lines with other names are ignored, so that a newer watchdog can add some.
 */
#ifndef SLIPWAY_LOAD_H
#define SLIPWAY_LOAD_H

#include <stdint.h>

struct load {
    int64_t time;   /* ns of CLOCK_MONOTONIC */
    int busy;       /* tenths of a percent; -1: not known */
    int64_t memory; /* bytes */
    int charge;     /* thousandths, 1 to 1000 */
    int percent;    /* 1 to 100 */
};

/* Of a GPU of the slice, by its index: 0, or -1 if there is no such figure, or none of the last five seconds
 * (no watchdog runs). The file is read twice a second at most. Takes no lock, so it may be called by any thread
 * and in a forked child. */
int load_of(int device, struct load *load);

#endif
