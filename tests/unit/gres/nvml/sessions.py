"""Programs in a session that query NVML, and what root writes for the session."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.unit.gres.conftest import MIB, UUID, Shim, Standin
from tests.unit.gres.programs import PREAMBLE

SLICE = 2048 * MIB
NAMESPACE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]

ASK = """
n = c.CDLL(sys.argv[2])
class Memory(c.Structure): _fields_ = [(x, c.c_ulonglong) for x in ("total", "free", "used")]
class Memory2(c.Structure):
    _fields_ = [("version", c.c_uint)] + [(x, u64) for x in ("total", "reserved", "free", "used")]
class One(c.Structure): _fields_ = [("pid", c.c_uint), ("bytes", c.c_ulonglong)]
class Two(One): _fields_ = [("gi", c.c_uint), ("ci", c.c_uint)]
class Detail(Two): _fields_ = [("protected", c.c_ulonglong)]
class Details(c.Structure):
    _fields_ = [(x, c.c_uint) for x in ("version", "mode", "count")] + [("list", c.POINTER(Detail))]
class Sample(c.Structure):
    _fields_ = [("pid", c.c_uint), ("time", u64), ("sm", c.c_uint), ("rest", c.c_uint * 3)]
class Info(c.Structure):
    _fields_ = [("time", u64), ("pid", c.c_uint), ("sm", c.c_uint), ("rest", c.c_uint * 5)]
class Infos(c.Structure):
    _fields_ = [(x, c.c_uint) for x in ("version", "count")]
    _fields_ += [("since", u64), ("list", c.POINTER(Info))]
class Value(c.Structure): _fields_ = [("time", c.c_ulonglong), ("number", c.c_uint)]
class Rates(c.Structure): _fields_ = [("gpu", c.c_uint), ("memory", c.c_uint)]
def version(kind, number): return c.sizeof(kind) | number << 24
ok(n.nvmlInit_v2())
def count():
    found = c.c_uint(); ok(n.nvmlDeviceGetCount_v2(c.byref(found))); return found.value
def handle(index=0):
    found = c.c_void_p(); ok(n.nvmlDeviceGetHandleByIndex_v2(index, c.byref(found))); return found
def utilisation(device):
    found = Rates(9, 9); ok(n.nvmlDeviceGetUtilizationRates(device, c.byref(found)))
    return found.gpu
def samples(device, since=0):
    for _ in range(5):  # the time of a sample may end between the two questions
        many, room = c.c_uint(64), (Sample * 64)()
        answer = n.nvmlDeviceGetProcessUtilization(device, room, c.byref(many), u64(since))
        infos = Infos(version(Infos, 1), 64, since, (Info * 64)())
        newer = n.nvmlDeviceGetProcessesUtilizationInfo(device, c.byref(infos))
        first = answer or [(one.pid, one.sm) for one in room[: many.value]]
        second = newer or [(one.pid, one.sm) for one in infos.list[: infos.count]]
        if first == second: return first
    assert False, (first, second)
def uuid(device):
    text = c.create_string_buffer(96); ok(n.nvmlDeviceGetUUID(device, text, 96))
    return text.value.decode()
def memory(device):
    found = Memory(); ok(n.nvmlDeviceGetMemoryInfo(device, c.byref(found)))
    return found.total // MIB, found.used // MIB, found.free // MIB
def processes(device, name="Compute", form="_v3", kind=Two):
    many, found = c.c_uint(64), (kind * 64)()
    ok(getattr(n, f"nvmlDeviceGet{name}RunningProcesses{form}")(device, c.byref(many), found))
    return [(one.pid, one.bytes // MIB) for one in found[: many.value]]
"""


@contextmanager
def running(standin: Standin, shim: Shim | None, text: str) -> Iterator[subprocess.Popen[str]]:
    """A program in the session (or outside it: None) that prints "ready" and then waits."""
    whole = PREAMBLE + text + "\nprint('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", whole, str((shim or standin).cuda)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == "ready\n"
            yield started
        finally:
            started.kill()


def ask(shim: Shim, text: str) -> str:
    """The output of a program in the session that queries NVML."""
    command = [sys.executable, "-c", PREAMBLE + ASK + text, str(shim.cuda), str(shim.nvml)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def smi(shim: Shim, standin: Standin, *words: str) -> str:
    """nvidia-smi in the session."""
    environment = {"LD_LIBRARY_PATH": str(shim.libraries)}
    command = [str(standin.smi), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def note_load(shim: Shim, busy: int, memory: int, percent: int = 25) -> None:
    """What root's watchdog has just seen of the session: tenths of a percent, and bytes."""
    lines = ["version=1", f"time={time.monotonic_ns()}", f"gpu={UUID.format(0)}", f"busy={busy}"]
    lines += [f"memory={memory}", "charge=1000", f"percent={percent}"]
    (shim.directory / "load").write_text("\n".join(lines) + "\n")
