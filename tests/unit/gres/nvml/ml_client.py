"""NVIDIA's Python bindings of NVML in a session: what they show of the first GPU, as JSON."""

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module

n = import_module("pynvml")  # not installed where the tests are type-checked

driver = ctypes.CDLL(sys.argv[1])
assert driver.cuInit(0) == 0
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(100 << 20)) == 0
duration = ctypes.c_uint(10000)
values = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
for _ in range(20):
    assert driver.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, None, values, None) == 0
assert driver.cuCtxSynchronize() == 0
time.sleep(0.15)

n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)


def error(function: Callable[..., object], *words: object) -> str:
    try:
        return repr(function(*words))
    except n.NVMLError as failed:
        return str(failed)


first, second = n.nvmlDeviceGetMemoryInfo(gpu), n.nvmlDeviceGetMemoryInfo(gpu, n.nvmlMemory_v2)
kind, samples = n.nvmlDeviceGetSamples(gpu, n.NVML_GPU_UTILIZATION_SAMPLES, 0)
own = os.getpid()
print(
    json.dumps(
        {
            "count": n.nvmlDeviceGetCount(),
            "memory": [each >> 20 for each in (first.total, first.used, second.total, second.used)],
            "processes": [
                [one.pid == own, one.usedGpuMemory >> 20]
                for one in n.nvmlDeviceGetComputeRunningProcesses(gpu)
            ],
            "utilisation": n.nvmlDeviceGetUtilizationRates(gpu).gpu,
            "by process": [
                [one.pid == own, one.smUtil] for one in n.nvmlDeviceGetProcessUtilization(gpu, 0)
            ],
            "samples": [kind, [one.sampleValue.uiVal for one in samples]],
            "accounting": [
                n.nvmlDeviceGetAccountingMode(gpu),
                error(n.nvmlDeviceGetAccountingPids, gpu),
                error(n.nvmlDeviceGetAccountingStats, gpu, own),
            ],
        }
    )
)
