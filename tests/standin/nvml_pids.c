/* The PIDs that NVML tells, by the driver's branch. In containers they are those of the caller's PID
 * namespace only from some version on, and not everywhere at once: first in lists of processes (535.113),
 * then where memory is looked up by PID (565.57), at last in samples of utilisation (570.86.15). What is
 * not translated is the host's. (From the history of NVIDIA's open kernel modules.) */
#define _GNU_SOURCE
#include "nvml_use.h"

static const struct branch branches[] = {
    {535, 12, "535.104.12", false, false, false},
    {550, 12, "550.144.03", true, false, false},
    {565, 12, "565.57.01", true, true, false},
    {570, 12, "570.86.15", true, true, true},
    {STANDIN_BRANCH, 13, "580.00.00", true, true, true},
};

/* An unknown number is the newest one before it. */
const struct branch *nvml_branch(void)
{
    const struct branch *found = branches;
    for (unsigned i = 0; i < sizeof branches / sizeof *branches; i++)
        if (branches[i].number <= state_branch())
            found = &branches[i];
    return found;
}

/* On the host itself both are the same. */
static bool translated(bool by_branch)
{
    return by_branch || state_on_host();
}

unsigned nvml_listed_pid(const struct process *process)
{
    return translated(nvml_branch()->lists) ? (unsigned)process->own : process->host;
}

/* A sample of a process outside of the caller's namespace has the host's PID in any case. */
unsigned nvml_sampled_pid(const struct process *process)
{
    return translated(nvml_branch()->samples) && process->own ? (unsigned)process->own : process->host;
}

unsigned long long nvml_memory_of(const struct process *all, int number, unsigned pid)
{
    const bool own = translated(nvml_branch()->memory);
    for (int i = 0; i < number; i++)
        if (pid == (own ? (unsigned)all[i].own : all[i].host))
            return all[i].bytes;
    return 0;
}
