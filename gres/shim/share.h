/* A session's share of one GPU's time, as one number that all its processes have in common.
 *
 * A time share, not a spatial one: a kernel has all multiprocessors while it runs, and the session
 * then waits until it has been idle for long enough. 25 % means a quarter of the time, not a quarter
 * of the multiprocessors all the time, so a single kernel is as quick as on the whole GPU, and steps
 * of work come in bursts. (A spatial share needs MPS or MIG.)
 *
 * It is paid for afterwards, when the GPU has said how long something took: a kernel of one second
 * at 25 % is followed by three seconds of waiting. What was not used may be used later only as far
 * as SHARE_DEPTH; nothing is borrowed from neighbours, so that a share is the same on an empty GPU
 * as on a full one.
 */
#ifndef SLIPWAY_SHARE_H
#define SLIPWAY_SHARE_H

#include <stdatomic.h>
#include <stdint.h>

#define SHARE_DEPTH INT64_C(100000000) /* ns */

/* The time (ns of CLOCK_MONOTONIC) at which everything used so far is paid for. One word, so a process
 * may be killed anywhere and nothing has to be mended; 0 at first. */
typedef _Atomic int64_t share;

/* A session that has `percent` of the GPU used `used` ns of it, no earlier than at `since`. */
void share_charge(share *paid, int percent, int64_t used, int64_t since);

/* How long the session's next launch has to wait, in ns; 0: it may go. */
int64_t share_wait(const share *paid, int64_t now);

#endif
