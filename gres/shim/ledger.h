/* Bytes held by all processes of the session, per device. What a dead process held is reclaimed by the
 * next call that needs it. Safe in threads, after fork, and against kill -9 at any line. */
#ifndef SLIPWAY_LEDGER_H
#define SLIPWAY_LEDGER_H

#include <stdint.h>
#include <sys/types.h>

int ledger_reserve(int device, uint64_t bytes); /* 0, or -1 when the slice has no room for it */
void ledger_charge(int device, uint64_t bytes); /* what the driver has taken already, room or not */
void ledger_release(int device, uint64_t bytes);
uint64_t ledger_used(int device);
int ledger_death_within(uint32_t seconds); /* of a process of the session that held memory */

struct ledger_process {
    pid_t pid; /* in the PID namespace of the caller; 0 where it is in none of its own */
    uint64_t bytes;
};
/* All living processes that have ever counted, also those that hold nothing on this device now. */
int ledger_processes(int device, struct ledger_process *found, int most);

#endif
