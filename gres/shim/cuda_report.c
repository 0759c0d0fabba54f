/* The GPU's memory as reported to programs: the slice, and what of it is free. */
#include "cuda_report.h"

#include "cuda_device.h"
#include "cuda_graphs.h"
#include "cuda_pools.h"
#include "ledger.h"
#include "slice.h"
#include "trace.h"

static uint64_t report_least(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* 0 for a whole GPU and for one that is not the job's, which are reported as the driver does. */
static uint64_t slice_memory(int device)
{
    return device < 0 ? 0 : slice()->device[device].memory;
}

/* Whatever the driver makes of a null pointer, it is not used here. */
static void report_slice(int device, uint64_t *unused, uint64_t *total)
{
    uint64_t memory = slice_memory(device);
    if (!memory)
        return;
    pools_sync();
    graphs_sync();
    uint64_t used = ledger_used(device);
    *total = report_least(*total, memory);
    *unused = report_least(*unused, used < *total ? *total - used : 0);
}

WRAP(cuMemGetInfo_v2, size_t *unused, size_t *total)
{
    CUresult result = real_cuMemGetInfo_v2(unused, total);
    if (result)
        return result;
    uint64_t left = unused ? *unused : 0, all = total ? *total : UINT64_MAX;
    report_slice(current_device(), &left, &all);
    if (unused)
        *unused = left;
    if (total)
        *total = all;
    return result;
}

/* Before CUDA 3.2: 32 bits, so at most 4 GiB less one byte. */
WRAP(cuMemGetInfo, unsigned int *unused, unsigned int *total)
{
    CUresult result = real_cuMemGetInfo(unused, total);
    if (result)
        return result;
    uint64_t left = unused ? *unused : 0, all = total ? *total : UINT64_MAX;
    report_slice(current_device(), &left, &all);
    if (unused)
        *unused = (unsigned int)left;
    if (total)
        *total = (unsigned int)all;
    return result;
}

WRAP(cuDeviceTotalMem_v2, size_t *bytes, CUdevice ordinal)
{
    CUresult result = real_cuDeviceTotalMem_v2(bytes, ordinal);
    uint64_t memory = result || !bytes ? 0 : slice_memory(device_of(ordinal));
    if (memory)
        *bytes = report_least(*bytes, memory);
    return result;
}

WRAP(cuDeviceTotalMem, unsigned int *bytes, CUdevice ordinal)
{
    CUresult result = real_cuDeviceTotalMem(bytes, ordinal);
    uint64_t memory = result || !bytes ? 0 : slice_memory(device_of(ordinal));
    if (memory)
        *bytes = (unsigned int)report_least(*bytes, memory);
    return result;
}

static void report_usage(uint64_t *used, uint64_t *total)
{
    const int device = current_device();
    *total = slice_memory(device);
    *used = ledger_used(device);
}

__attribute__((constructor)) static void offer_report_usage(void)
{
    trace_usage = report_usage;
}

const struct hook report_hooks[] = {
    HOOK(cuMemGetInfo_v2),
    HOOK(cuMemGetInfo),
    HOOK(cuDeviceTotalMem_v2),
    HOOK(cuDeviceTotalMem),
    HOOKS_END,
};
