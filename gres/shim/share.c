/* The generic cell rate algorithm (GCRA) in its virtual scheduling form; see share.h. */
#include "share.h"

void share_charge(share_tat *tat, int percent, int64_t used, int64_t since)
{
    int64_t old = atomic_load(tat), from;
    const int64_t earliest = since - SHARE_TOLERANCE;
    if (used <= 0)
        return;
    do
        from = old > earliest ? old : earliest;
    while (!atomic_compare_exchange_weak(tat, &old, from + used * 100 / percent));
}

int64_t share_wait(const share_tat *tat, int64_t now)
{
    int64_t wait = atomic_load(tat) - now;
    return wait > 0 ? wait : 0;
}
