"""NVIDIA's own Python bindings of the driver's functions, on the driver that the linker finds.

Prints a line for each step, with what it did to the GPU's memory in MiB or how many ms it took.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

cu = import_module("cuda.bindings.driver")  # not installed where the tests are type-checked

MIB = 1 << 20


def ok(result: Any) -> Any:
    code, *rest = result
    assert int(code) == 0, code
    return rest[0] if len(rest) == 1 else rest


ok(cu.cuInit(0))
context = ok(cu.cuDevicePrimaryCtxRetain(ok(cu.cuDeviceGet(0))))
ok(cu.cuCtxSetCurrent(context))
before, total = ok(cu.cuMemGetInfo())
print("total", total // MIB, ok(cu.cuDeviceTotalMem(0)) // MIB)


def taken(step: str) -> None:
    ok(cu.cuCtxSynchronize())
    print(step, (before - ok(cu.cuMemGetInfo())[0]) // MIB)


address = ok(cu.cuMemAlloc(64 * MIB))
taken("plain")
stream, other = ok(cu.cuStreamCreate(1)), ok(cu.cuStreamCreate(1))
pool = ok(cu.cuDeviceGetDefaultMemPool(0))
attribute = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
ok(cu.cuMemPoolSetAttribute(pool, attribute, cu.cuuint64_t(32 * MIB)))
ordered = ok(cu.cuMemAllocAsync(32 * MIB, stream))
taken("ordered")
ok(cu.cuMemFreeAsync(ordered, stream))
taken("kept by the pool")
ok(cu.cuMemPoolTrimTo(pool, 0))
ok(cu.cuMemFree(address))
taken("freed")
assert int(cu.cuMemAlloc(total + MIB)[0]) == 2
taken("refused")

prop = cu.CUmemAllocationProp()
prop.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
prop.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
prop.location.id = 0
handle = ok(cu.cuMemCreate(16 * MIB, prop, 0))
place = ok(cu.cuMemAddressReserve(16 * MIB, 0, 0, 0))
ok(cu.cuMemMap(place, 16 * MIB, 0, handle, 0))
ok(cu.cuMemRelease(handle))
taken("mapped")
ok(cu.cuMemUnmap(place, 16 * MIB))
ok(cu.cuMemAddressFree(place, 16 * MIB))
taken("unmapped")

library = ok(cu.cuLibraryLoadData(b"none", [], [], 0, [], [], 0))
kernel = cu.CUfunction(int(ok(cu.cuLibraryGetKernel(library, b"kernel"))))


def launch(us: int, on: Any) -> None:
    values = ((us,), (ctypes.c_uint,))
    ok(cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, on, values, 0))


def launch_with_attributes(us: int, on: Any) -> None:
    config = cu.CUlaunchConfig()
    config.gridDimX = config.gridDimY = config.gridDimZ = 1
    config.blockDimX = config.blockDimY = config.blockDimZ = 1
    config.hStream = on
    ok(cu.cuLaunchKernelEx(config, kernel, ((us,), (ctypes.c_uint,)), 0))


def events() -> tuple[Any, Any]:
    return ok(cu.cuEventCreate(0)), ok(cu.cuEventCreate(0))


def between(begin: Any, end: Any) -> int:
    ok(cu.cuEventSynchronize(end))
    return round(float(ok(cu.cuEventElapsedTime(begin, end))))


begin, end = events()
ok(cu.cuEventRecord(begin, stream))
launch(10000, stream)
ok(cu.cuStreamWaitEvent(other, begin, 0))
launch_with_attributes(10000, stream)
ok(cu.cuEventRecord(end, stream))
print("kernels", between(begin, end) >= 20)

ok(cu.cuStreamBeginCapture(stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
launch(10000, stream)
held = ok(cu.cuMemAllocAsync(8 * MIB, stream))
graph = ok(cu.cuStreamEndCapture(stream))
runnable = ok(cu.cuGraphInstantiate(graph, 0))
taken("captured")
ok(cu.cuGraphLaunch(runnable, stream))
taken("launched")
ok(cu.cuMemFreeAsync(held, stream))
ok(cu.cuDeviceGraphMemTrim(0))
taken("trimmed")

resource = ok(cu.cuDeviceGetDevResource(0, cu.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))
groups, _, _ = ok(cu.cuDevSmResourceSplitByCount(1, resource, 0, 4))
green = ok(cu.cuGreenCtxCreate(ok(cu.cuDevResourceGenerateDesc(groups, 1)), 0, 1))
separate = ok(cu.cuGreenCtxStreamCreate(green, 1, 0))
launch(10000, separate)
ok(cu.cuStreamSynchronize(separate))
ok(cu.cuStreamDestroy(separate))
ok(cu.cuGreenCtxDestroy(green))
taken("green")
