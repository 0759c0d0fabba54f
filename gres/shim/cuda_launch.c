/* Placeholder until the limiter is here: nothing is wrapped. */
#include "cuda_shim.h"

const struct hook launch_hooks[] = {HOOKS_END};

void limiter_look(void)
{
}

void limiter_forget(int cuda_device)
{
    (void)cuda_device;
}
