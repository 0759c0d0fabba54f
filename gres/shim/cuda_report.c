/* The GPU's memory as reported to programs: the slice, and what of it is free. */
#include "cuda_report.h"

#include "cuda_device.h"
#include "cuda_graphs.h"
#include "cuda_pools.h"
#include "ledger.h"
#include "slice.h"
#include "trace.h"

static uint64_t less(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* 0 for a whole GPU and for one that is not the job's, which are reported as the driver does. */
static uint64_t slice_memory(int device)
{
    return device < 0 ? 0 : slice()->device[device].memory;
}

static void narrow(int device, uint64_t *unused, uint64_t *total)
{
    uint64_t memory = slice_memory(device);
    if (!memory)
        return;
    pools_sync();
    graphs_sync();
    uint64_t used = ledger_used(device);
    *total = less(*total, memory);
    *unused = less(*unused, used < *total ? *total - used : 0);
}

WRAP(cuMemGetInfo_v2, size_t *unused, size_t *total)
{
    CUresult result = real_cuMemGetInfo_v2(unused, total);
    if (result)
        return result;
    uint64_t left = *unused, all = *total;
    narrow(current_device(), &left, &all);
    *unused = left;
    *total = all;
    return result;
}

/* Before CUDA 3.2: 32 bits, so at most 4 GiB less one byte. */
WRAP(cuMemGetInfo, unsigned int *unused, unsigned int *total)
{
    CUresult result = real_cuMemGetInfo(unused, total);
    if (result)
        return result;
    uint64_t left = *unused, all = *total;
    narrow(current_device(), &left, &all);
    *unused = (unsigned int)left;
    *total = (unsigned int)all;
    return result;
}

WRAP(cuDeviceTotalMem_v2, size_t *bytes, CUdevice ordinal)
{
    CUresult result = real_cuDeviceTotalMem_v2(bytes, ordinal);
    uint64_t memory = result ? 0 : slice_memory(device_of(ordinal));
    if (memory)
        *bytes = less(*bytes, memory);
    return result;
}

WRAP(cuDeviceTotalMem, unsigned int *bytes, CUdevice ordinal)
{
    CUresult result = real_cuDeviceTotalMem(bytes, ordinal);
    uint64_t memory = result ? 0 : slice_memory(device_of(ordinal));
    if (memory)
        *bytes = (unsigned int)less(*bytes, memory);
    return result;
}

static void current_usage(uint64_t *used, uint64_t *total)
{
    const int device = current_device();
    *total = slice_memory(device);
    *used = ledger_used(device);
}

__attribute__((constructor)) static void offer_usage(void)
{
    trace_usage = current_usage;
}

const struct hook report_hooks[] = {
    HOOK(cuMemGetInfo_v2),
    HOOK(cuMemGetInfo),
    HOOK(cuDeviceTotalMem_v2),
    HOOK(cuDeviceTotalMem),
    HOOKS_END,
};
