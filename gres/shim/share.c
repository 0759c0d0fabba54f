#include "share.h"

void share_charge(share *paid, int percent, int64_t used, int64_t since)
{
    int64_t old = atomic_load(paid), from;
    if (used <= 0)
        return;
    do
        from = old > since - SHARE_DEPTH ? old : since - SHARE_DEPTH;
    while (!atomic_compare_exchange_weak(paid, &old, from + used * 100 / percent));
}

int64_t share_wait(const share *paid, int64_t now)
{
    int64_t wait = atomic_load(paid) - now;
    return wait > 0 ? wait : 0;
}
