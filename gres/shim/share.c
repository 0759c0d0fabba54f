/* The generic cell rate algorithm (GCRA) in its virtual scheduling form; see share.h. */
#include "share.h"

void share_charge(share_tat *tat, int percent, int64_t used, int64_t since, int64_t now)
{
    int64_t old = atomic_load(tat), next;
    const int64_t earliest = since - SHARE_TOLERANCE;
    if (used <= 0)
        return;
    do {
        next = (old > earliest ? old : earliest) + used * 100 / percent;
        if (next > now + SHARE_DEBT)
            next = now + SHARE_DEBT;
    } while (!atomic_compare_exchange_weak(tat, &old, next));
}

int64_t share_wait(const share_tat *tat, int64_t now)
{
    int64_t wait = atomic_load(tat) - now;
    return wait > SHARE_DEBT ? SHARE_DEBT : wait > 0 ? wait : 0;
}
