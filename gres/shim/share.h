/* A session's share of one GPU's time, kept by the generic cell rate algorithm (GCRA, ITU-T I.371) in its
 * virtual scheduling form: one number, the theoretical arrival time (TAT), that all processes of the
 * session share. A launch conforms once the clock has reached the TAT; the GPU time that it used,
 * divided by the share, is then added to it. The tolerance (SHARE_TOLERANCE) bounds how far the TAT may
 * lag behind the clock, which is the credit for time that was not used.
 *
 * A time share, not a spatial one: a kernel has all multiprocessors while it runs, and the session
 * then waits until it has been idle for long enough. 25 % means a quarter of the time, not a quarter
 * of the multiprocessors all the time, so a single kernel is as quick as on the whole GPU, and steps
 * of work come in bursts. (A spatial share needs MPS or MIG.)
 *
 * Unlike in a network, the cost is known only afterwards, when the GPU has measured the duration of a
 * launch: a kernel of one second at 25 % is followed by three seconds of waiting. The debt is bounded
 * (SHARE_DEBT): whatever a kernel took, a debugger held it or a clock went wrong, a session waits for no
 * longer than that.
 */
#ifndef SLIPWAY_SHARE_H
#define SLIPWAY_SHARE_H

#include <stdatomic.h>
#include <stdint.h>

/* ns: as long as people take for "at once", and two windows of work in flight (METER_WINDOW), so that a session
 * that keeps the GPU busy never loses credit while it waits for its own work. */
#define SHARE_TOLERANCE INT64_C(100000000)
/* ns: at 25 % the debt of a kernel of 3.3 seconds. Longer ones get more than the share, which is the price for
 * programs that never look as if they hang. */
#define SHARE_DEBT INT64_C(10000000000)

/* The theoretical arrival time, in ns of CLOCK_MONOTONIC; 0 at first. One word, so that a process may be
 * killed at any point without leaving an inconsistent state. Root may set it to 0, which cancels the debt. */
typedef _Atomic int64_t share_tat;

/* A session that has `percent` of the GPU used `used` ns of it, no earlier than at `since`. */
void share_charge(share_tat *tat, int percent, int64_t used, int64_t since, int64_t now);

/* How long the session's next launch has to wait, in ns; 0: it conforms. */
int64_t share_wait(const share_tat *tat, int64_t now);

#endif
