"""Launching by CUDA's driver API:  launches.py CASE …  prints its findings as JSON."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable

from driver import LOOPS, NON_BLOCKING, Counter, Cuda, Kernel
from saying import pause, say

CAPTURE_GLOBAL = 0
"""The strictest: what any thread does meanwhile can break it."""


def calibrate(cuda: Cuda) -> None:
    """Rounds of the kernel that take a microsecond, by the GPU's own clock."""
    kernel = Kernel(cuda)
    events = ctypes.c_void_p(), ctypes.c_void_p()
    for event in events:
        cuda.call("cuEventCreate", ctypes.byref(event), 0)
    shortest = 0.0
    for _ in range(5):
        cuda.call("cuEventRecord", events[0], None)
        kernel(10_000)
        cuda.call("cuEventRecord", events[1], None)
        cuda.wait()
        taken = ctypes.c_float()
        cuda.call("cuEventElapsedTime", ctypes.byref(taken), *events)
        shortest = min(shortest or taken.value, taken.value)
    say(loops=max(1, round(LOOPS * 10 / shortest)), ms=shortest)


def busy(cuda: Cuda, seconds: str, us: str, warm: str = "0", held: str = "0") -> None:
    """Kernels one after the other, with part of the slice held: how many per second.

    The first `warm` seconds do not count: the watchdog needs some polls to know the neighbours.
    """
    launch = Kernel(cuda)
    size = int(cuda.memory()["total"] * float(held))
    if size and cuda.allocate("plain", size) is None:
        sys.exit(f"{held} of the slice could not be had")
    launch(1)
    cuda.wait()
    say(ready=True, pid=os.getpid())
    pause()
    _rate(cuda, launch, int(us), float(warm))
    say(rate=_rate(cuda, launch, int(us), float(seconds)))


def _rate(cuda: Cuda, launch: Kernel, us: int, seconds: float) -> float:
    began, done, batch = time.monotonic(), 0, max(1, 2000 // us)
    while time.monotonic() - began < seconds:
        for _ in range(batch):
            launch(us)
        cuda.wait()
        done += batch
    return done / max(1e-9, time.monotonic() - began)


def debt(cuda: Cuda, us: str) -> None:
    """One long kernel, alone; the suite then looks how long another process waits."""
    kernel = Kernel(cuda)
    cuda.wait()
    began = time.monotonic()
    kernel(int(us))
    cuda.wait()
    say(seconds=time.monotonic() - began)


def first(cuda: Cuda) -> None:
    """How long the first launch of a new process takes."""
    kernel = Kernel(cuda)
    began = time.monotonic()
    kernel(1)
    cuda.wait()
    say(seconds=time.monotonic() - began)


class Others:
    """A thread that launches on a stream of its own all the time."""

    def __init__(self, cuda: Cuda, kernel: Kernel) -> None:
        self._cuda = cuda
        self._kernel = kernel
        self._stream = cuda.stream()
        self._begun, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._launch)
        self.launched = 0
        self.failed = 0

    def __enter__(self) -> Others:
        self._thread.start()
        self._begun.wait()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    def _launch(self) -> None:
        try:
            self._cuda.call("cuCtxSetCurrent", self._cuda.context)
            while not self._over.is_set() and not self.failed:
                self.failed = self._kernel.ask(10, self._stream)
                self.launched += 1
                self._begun.set()
        finally:
            self._begun.set()  # nobody waits for a thread that failed


def capture(cuda: Cuda, times: str) -> None:
    """Capture strictly while another thread launches, and replay; every answer must be 0."""
    kernel, counter, stream = Kernel(cuda), Counter(cuda), cuda.stream()
    kernel(1, stream)  # now its code is loaded, which would break a capture
    cuda.wait()
    answers = []
    with Others(cuda, kernel) as others:
        for _ in range(int(times)):
            graph, runnable = ctypes.c_void_p(), ctypes.c_void_p()
            place = ctypes.byref(runnable)
            answers.append(cuda.ask("cuStreamBeginCapture_v2", stream, CAPTURE_GLOBAL))
            answers += [kernel.ask(1, stream, counter.address) for _ in range(50)]
            answers.append(cuda.ask("cuStreamEndCapture", stream, ctypes.byref(graph)))
            answers.append(cuda.ask("cuGraphInstantiateWithFlags", place, graph, 0))
            if any(answers):
                break
            answers.append(cuda.ask("cuGraphLaunch", runnable, stream))
            answers.append(cuda.ask("cuStreamSynchronize", stream))
            answers.append(cuda.ask("cuGraphExecDestroy", runnable))
            answers.append(cuda.ask("cuGraphDestroy", graph))
    wrong = sorted({answer for answer in answers if answer})
    say(
        wrong=wrong,
        other=others.failed,
        launched=others.launched,
        counted=None if wrong else counter.value(),
        expected=50 * int(times),
    )


GREEN = (
    "cuDeviceGetDevResource",
    "cuDevSmResourceSplitByCount",
    "cuDevResourceGenerateDesc",
    "cuGreenCtxCreate",
    "cuGreenCtxStreamCreate",
    "cuGreenCtxDestroy",
)
RESOURCE = 144
"""Bytes of a CUdevResource."""
SM = 1
"""The type of resource, and the flag of cuGreenCtxCreate, which has the same number."""


def green(cuda: Cuda, number: str) -> None:
    """Launches on a stream of a green context while the primary one is current."""
    if lacks := [name for name in GREEN if not cuda.has(name)]:
        say(lacks=lacks)
        return
    kernel = Kernel(cuda)
    everything, part = (ctypes.create_string_buffer(RESOURCE) for _ in range(2))
    groups, described = ctypes.c_uint(1), ctypes.c_void_p()
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.call(GREEN[0], cuda.device, everything, SM)
    cuda.call(GREEN[1], part, ctypes.byref(groups), everything, None, 0, 8)
    cuda.call(GREEN[2], ctypes.byref(described), part, 1)
    cuda.call(GREEN[3], ctypes.byref(context), described, cuda.device, SM)
    cuda.call(GREEN[4], ctypes.byref(stream), context, NON_BLOCKING, 0)
    answers = {kernel.ask(1, stream)}
    cuda.call("cuStreamSynchronize", stream)
    began = time.monotonic()
    answers |= {kernel.ask(1, stream) for _ in range(int(number))}
    us = (time.monotonic() - began) * 1e6 / int(number)
    cuda.call("cuStreamSynchronize", stream)
    cuda.call("cuStreamDestroy_v2", stream)
    cuda.call(GREEN[5], context)
    kernel(1)  # the primary context's own stream still works
    cuda.wait()
    say(wrong=sorted(answers - {0}), us=us)


CASES: dict[str, Callable[..., None]] = {
    "calibrate": calibrate,
    "busy": busy,
    "debt": debt,
    "first": first,
    "capture": capture,
    "green": green,
}

if __name__ == "__main__":
    CASES[sys.argv[1]](Cuda(), *sys.argv[2:])
