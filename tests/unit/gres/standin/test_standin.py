"""The stand-in driver behaves as the tests of the shim require."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.gres.conftest import MIB, Standin
from tests.unit.gres.programs import CONTEXT, output, program

HOLD = "start(); ok(alloc({} * MIB)[0]); print('holds', flush=True); sys.stdin.read()"


def test_processes_share_memory_and_a_killed_one_frees_its_own(
    standin: Standin,
) -> None:
    holder = program(standin, HOLD.format(6000))
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holds\n"
    shown = standin.show()
    assert shown["gpus"][0]["used"] == 6000 * MIB + CONTEXT
    assert [one["pid"] for one in shown["processes"]] == [holder.pid]
    # Another process gets the rest, to the byte.
    left = (8192 - 6000) * MIB - 2 * CONTEXT
    more = f"start(); print(alloc({left} + 1)[0], alloc({left})[0], free())"
    assert output(standin, more) == "2 0 0"
    holder.kill()
    holder.communicate()
    assert standin.used() == 0


def test_an_inaccessible_device_is_not_listed(standin: Standin) -> None:
    standin.device().unlink()
    assert output(standin, "print(d.cuInit(0))") == "100"


@pytest.mark.parametrize("name", ["libcuda.so.1", "libnvidia-ml.so.1", "nvidia-smi"])
def test_what_images_get_runs_with_the_c_library_of_2018(standin: Standin, name: str) -> None:
    path = standin.directory / name
    versions = readelf("--version-info", path)
    needed = {
        tuple(map(int, one.split("."))) for one in re.findall(r"Name: GLIBC_([\d.]+)", versions)
    }
    assert needed
    assert max(needed) <= (2, 28)
    # Where these functions were before glibc 2.34 moved them.
    libraries = set(re.findall(r"NEEDED.*\[(.+)\]", readelf("--dynamic", path)))
    assert libraries >= {"libdl.so.2", "libpthread.so.0", "libc.so.6"}


def readelf(option: str, path: Path) -> str:
    """What readelf says about a program or library."""
    command = ["readelf", "--wide", option, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_cuda_visible_devices(standin: Standin) -> None:
    standin.reset(gpus=3)
    look = """
ok(d.cuInit(0)); n = c.c_int(); ok(d.cuDeviceGetCount(c.byref(n)))
found = []
for i in range(n.value):
    uuid = (c.c_ubyte * 16)(); ok(d.cuDeviceGetUuid_v2(c.byref(uuid), i)); found.append(uuid[15])
print(found)"""
    assert output(standin, look) == "[0, 1, 2]"
    assert output(standin, look, CUDA_VISIBLE_DEVICES="2,0,7,1") == "[2, 0]"
    uuid = str(standin.show()["gpus"][1]["uuid"])
    assert output(standin, look, CUDA_VISIBLE_DEVICES=uuid) == "[1]"
    standin.device(0).unlink()  # inaccessible devices are not counted
    assert output(standin, look, CUDA_VISIBLE_DEVICES="0") == "[1]"


def test_lookups_in_both_forms(standin: Standin) -> None:
    text = """
found, status = c.c_void_p(), c.c_int()
def new(name, version, flags=0):
    ok(d.cuGetProcAddress_v2(name, c.byref(found), version, u64(flags), c.byref(status)))
    return found.value, status.value
def old(name, version, flags=0):
    return d.cuGetProcAddress(name, c.byref(found), version, u64(flags)), found.value
def at(name): return c.cast(getattr(d, name), c.c_void_p).value
assert new(b"cuMemAlloc", 2000) == (at("cuMemAlloc"), 0)
assert new(b"cuMemAlloc", 12000) == (at("cuMemAlloc_v2"), 0)
assert old(b"cuMemAlloc", 11030) == (0, at("cuMemAlloc_v2"))
assert new(b"cuMemAllocAsync", 11020) == (at("cuMemAllocAsync"), 0)
assert new(b"cuMemAllocAsync", 11020, 2) == (at("cuMemAllocAsync_ptsz"), 0)
assert at("cuMemAllocAsync") != at("cuMemAllocAsync_ptsz")
assert new(b"cuMemAllocAsync", 11010) == (None, 2)
assert new(b"cuNothing", 12000) == (None, 1)
assert old(b"cuNothing", 12000) == (500, None)
assert new(b"cuGetProcAddress", 12000) == (at("cuGetProcAddress_v2"), 0)
assert new(b"cuGetProcAddress", 11030) == (at("cuGetProcAddress"), 0)
"""
    output(standin, text)


ALLOCATORS = {
    "pitch": """
p, pitch = u64(), size()
ok(d.cuMemAllocPitch_v2(c.byref(p), c.byref(pitch), size(1000), size(1024), 4))
taken(2 * MIB)
ok(d.cuMemFree_v2(p))""",
    "managed": """
p = u64()
ok(d.cuMemAllocManaged(c.byref(p), size(3 * MIB), 1))
c.memset(p.value, 7, 3 * MIB)  # the host may touch it
taken(4 * MIB)
ok(d.cuMemFree_v2(p))""",
    "host": """
p = c.c_void_p()
ok(d.cuMemHostAlloc(c.byref(p), size(MIB), 0))
taken(0)
ok(d.cuMemFreeHost(p))""",
    "array": """
class Wanted(c.Structure):
    _fields_ = [("extent", size * 3), ("format", c.c_int), ("n", c.c_uint), ("flags", c.c_uint)]
a, wanted = c.c_void_p(), Wanted((512, 512, 1), 0x20, 4, 0)
ok(d.cuArray3DCreate_v2(c.byref(a), c.byref(wanted)))
taken(4 * MIB)
ok(d.cuArrayDestroy(a))
ok(d.cuMipmappedArrayCreate(c.byref(a), c.byref(wanted), 2))
taken(6 * MIB)
ok(d.cuMipmappedArrayDestroy(a))""",
    "pool": """
pool, p, q, value = c.c_void_p(), u64(), u64(), u64(2 * MIB)
ok(d.cuDeviceGetDefaultMemPool(c.byref(pool), 0))
ok(d.cuMemPoolSetAttribute(pool, 4, c.byref(value)))
ok(d.cuMemAllocAsync(c.byref(p), size(3 * MIB), None))
ok(d.cuMemAllocAsync_ptsz(c.byref(q), size(3 * MIB), None))
taken(6 * MIB)
ok(d.cuMemFreeAsync(p, None)); ok(d.cuMemFreeAsync(q, None))
taken(6 * MIB)  # kept until a synchronisation
ok(d.cuStreamSynchronize(None))
taken(2 * MIB)
ok(d.cuMemPoolGetAttribute(pool, 5, c.byref(value))); assert value.value == 2 * MIB
ok(d.cuMemPoolTrimTo(pool, size(0)))""",
    "handles and mappings": """
prop = (c.c_int * 8)(1, 0, 1, 0)
handle, again, p = u64(), u64(), u64()
ok(d.cuMemCreate(c.byref(handle), size(4 * MIB), prop, u64(0)))
ok(d.cuMemAddressReserve(c.byref(p), size(4 * MIB), size(0), u64(0), u64(0)))
ok(d.cuMemMap(p, size(4 * MIB), size(0), handle, u64(0)))
ok(d.cuMemRelease(handle))
taken(4 * MIB)
ok(d.cuMemRetainAllocationHandle(c.byref(again), c.c_void_p(p.value)))
ok(d.cuMemUnmap(p, size(4 * MIB)))
taken(4 * MIB)
ok(d.cuMemRelease(again))
taken(0)
ok(d.cuMemCreate(c.byref(handle), size(4 * MIB), (c.c_int * 8)(1, 0, 2, 0), u64(0)))
taken(0)  # the host's memory""",
    "graph": """
class Wanted(c.Structure):
    _fields_ = [("pool", c.c_int * 22), ("a", u64), ("b", u64), ("bytes", u64), ("at", u64)]
graph, node, run, wanted = c.c_void_p(), c.c_void_p(), c.c_void_p(), Wanted(bytes=5 * MIB)
ok(d.cuGraphCreate(c.byref(graph), 0))
ok(d.cuGraphAddMemAllocNode(c.byref(node), graph, None, size(0), c.byref(wanted)))
ok(d.cuGraphAddMemFreeNode(c.byref(node), graph, None, size(0), u64(wanted.at)))
ok(d.cuGraphInstantiateWithFlags(c.byref(run), graph, u64(0)))
taken(0)
ok(d.cuGraphLaunch(run, None)); ok(d.cuGraphLaunch_ptsz(run, None))
taken(5 * MIB)  # kept for the next launch
ok(d.cuDeviceGraphMemTrim(0))""",
    "capture": """
stream, graph, run, p = c.c_void_p(), c.c_void_p(), c.c_void_p(), u64()
ok(d.cuStreamCreate(c.byref(stream), 0))
ok(d.cuStreamBeginCapture_v2(stream, 0))
ok(d.cuMemAllocAsync(c.byref(p), size(5 * MIB), stream))
ok(d.cuStreamEndCapture(stream, c.byref(graph)))
taken(0)
ok(d.cuGraphInstantiateWithFlags(c.byref(run), graph, u64(0)))
ok(d.cuGraphLaunch(run, stream))
taken(5 * MIB)
ok(d.cuMemFreeAsync(p, stream)); ok(d.cuDeviceGraphMemTrim(0))""",
    "graph in a graph": """
class Wanted(c.Structure):
    _fields_ = [("pool", c.c_int * 22), ("a", u64), ("b", u64), ("bytes", u64), ("at", u64)]
inner, outer, node, run = c.c_void_p(), c.c_void_p(), c.c_void_p(), c.c_void_p()
ok(d.cuGraphCreate(c.byref(inner), 0)); ok(d.cuGraphCreate(c.byref(outer), 0))
small, large = Wanted(bytes=5 * MIB), Wanted(bytes=9000 * MIB)
for wanted in (small, large):
    ok(d.cuGraphAddMemAllocNode(c.byref(node), inner, None, size(0), c.byref(wanted)))
ok(d.cuGraphAddChildGraphNode(c.byref(node), outer, None, size(0), inner))
ok(d.cuGraphInstantiateWithFlags(c.byref(run), outer, u64(0)))
assert d.cuGraphLaunch(run, None) == 2
taken(5 * MIB)  # reserved, but nothing of it is in use
ok(d.cuDeviceGraphMemTrim(0))""",
    "another process's": """
p, q = u64(), u64()
class Handle(c.Structure): _fields_ = [("bytes", c.c_ubyte * 64)]
handle = Handle()
ok(d.cuMemAlloc_v2(c.byref(p), size(MIB)))
ok(d.cuIpcGetMemHandle(c.byref(handle), p))
d.cuIpcOpenMemHandle_v2.argtypes = [c.c_void_p, Handle, c.c_uint]
ok(d.cuIpcOpenMemHandle_v2(c.addressof(q), handle, 1))
taken(2 * MIB)
ok(d.cuIpcCloseMemHandle(q))
taken(2 * MIB)
ok(d.cuMemFree_v2(p))""",
    "context": """
context = c.c_void_p()
ok(d.cuCtxCreate_v2(c.byref(context), 0, 0))
ok(alloc(MIB)[0])
taken(66 * MIB)
ok(d.cuCtxDestroy_v2(context))  # its memory goes with it""",
}


@pytest.mark.parametrize("text", ALLOCATORS.values(), ids=ALLOCATORS)
def test_each_allocator_allocates_and_frees(standin: Standin, text: str) -> None:
    whole = "start(); before = free()\ndef taken(b): assert before - free() == b, before - free()\n"
    output(standin, whole + text + "\ntaken(0)")


def test_two_processes_share_the_gpus_time(standin: Standin) -> None:
    """Each runs 100 ms of kernels; the GPU was busy for 200 ms, and for longer than either took."""
    text = """
start()
print("ready", flush=True); sys.stdin.readline()
for _ in range(20): run(5000)
ok(d.cuCtxSynchronize())
print("done", flush=True); sys.stdin.readline()"""
    both = [program(standin, text) for _ in range(2)]
    for one in both:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    before = standin.show()
    for word in ("done\n", ""):
        for one in both:
            assert one.stdin is not None
            assert one.stdout is not None
            one.stdin.write("\n")
            one.stdin.flush()
        for one in both:
            assert one.stdout is not None
            assert one.stdout.readline() == word
        if word:
            after = standin.show()
    for one in both:
        one.communicate()
    assert after["gpus"][0]["busy_ns"] - before["gpus"][0]["busy_ns"] == 200_000_000
    assert [one["busy_ns"] for one in after["processes"]] == [[100_000_000]] * 2
    assert after["now_ns"] - before["now_ns"] >= 200_000_000


def test_every_form_of_a_launch_keeps_the_gpu_busy(standin: Standin) -> None:
    text = """
start()
us = c.c_uint(1000); values = (c.c_void_p * 1)(c.addressof(us)); none = c.c_void_p()
class Config(c.Structure):
    _fields_ = [("dims", c.c_uint * 7), ("stream", c.c_void_p), ("attrs", c.c_void_p * 2)]
class Each(c.Structure):
    _fields_ = [("f", c.c_void_p), ("dims", c.c_uint * 7), ("s", c.c_void_p), ("v", c.c_void_p)]
config, each = Config((1,) * 6), (Each * 2)(*[Each(None, (1,) * 6, None, c.addressof(values))] * 2)
for form in ("", "_ptsz"):
    ok(d["cuLaunchKernel" + form](none, 1, 1, 1, 1, 1, 1, 0, none, values, none))
    ok(d["cuLaunchKernelEx" + form](c.byref(config), none, values, none))
    ok(d["cuLaunchCooperativeKernel" + form](none, 1, 1, 1, 1, 1, 1, 0, none, values))
ok(d.cuLaunchCooperativeKernelMultiDevice(each, 2, 0))
ok(d.cuParamSeti(none, 0, 1000))
ok(d.cuLaunch(none)); ok(d.cuLaunchGrid(none, 1, 1)); ok(d.cuLaunchGridAsync(none, 1, 1, none))
stream, graph, exe, state = c.c_void_p(), c.c_void_p(), c.c_void_p(), c.c_int()
ok(d.cuStreamCreate(c.byref(stream), 0))
ok(d.cuStreamBeginCapture_v2(stream, 0))
run(1000, stream)  # noted, not run
ok(d.cuStreamIsCapturing(stream, c.byref(state))); assert state.value == 1
ok(d.cuStreamEndCapture(stream, c.byref(graph)))
ok(d.cuGraphInstantiateWithFlags(c.byref(exe), graph, u64(0)))
ok(d.cuGraphLaunch(exe, stream)); ok(d.cuCtxSynchronize())  # or they would overlap
ok(d.cuGraphLaunch_ptsz(exe, none)); ok(d.cuCtxSynchronize())"""
    output(standin, text)
    assert standin.show()["gpus"][0]["busy_ns"] == 13 * 1_000_000


def test_events_measure_what_ran_between_them(standin: Standin) -> None:
    text = """
start(); a, b, ms = c.c_void_p(), c.c_void_p(), c.c_float()
ok(d.cuEventCreate(c.byref(a), 0)); ok(d.cuEventCreate(c.byref(b), 0))
ok(d.cuEventRecord(a, None)); run(30000); ok(d.cuEventRecord(b, None))
assert d.cuEventQuery(b) == 600 and d.cuStreamQuery(None) == 600
ok(d.cuEventSynchronize(b)); ok(d.cuStreamQuery(None))
ok(d.cuEventElapsedTime(c.byref(ms), a, b))
assert 30 <= ms.value < 1000, ms.value"""
    output(standin, text)


def test_a_child_starts_empty_and_the_parent_keeps_its_memory(standin: Standin) -> None:
    text = """
start(); ok(alloc(100 * MIB)[0]); before = free()
if os.fork() == 0:
    assert alloc(MIB)[0] == 3  # not initialised
    start(); ok(alloc(50 * MIB)[0]); os._exit(0)
assert os.wait()[1] == 0
assert free() == before"""
    output(standin, text)
