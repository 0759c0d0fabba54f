"""Figures in a session's PID namespace, with drivers that translate PIDs and with older ones.

Up to 535.104 NVML has the host's PIDs everywhere; from 535.113 on those of the caller's namespace
in lists of processes, from 565.57 on where memory is looked up, from 570.86 on in samples.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.unit.gres.conftest import MIB, Shim, Standin
from tests.unit.gres.nvml.sessions import ASK, NAMESPACE, note_load, running
from tests.unit.gres.programs import CONTEXT, PREAMBLE

DRIVERS = ("535", "550", "565", "570", "580")
HELD = 100 * MIB + CONTEXT
BUSY = 200  # tenths of a percent of the GPU, which are 80 % of the session's quarter

PROGRAM = """
import json, subprocess, time
start(); ok(alloc(100 * MIB)[0])
for _ in range(20): run(10000)
ok(d.cuCtxSynchronize())
time.sleep(0.15)  # until the last tenth of a second is over, too
g = handle()
second = Memory2(version(Memory2, 2)); ok(n.nvmlDeviceGetMemoryInfo_v2(g, c.byref(second)))
room = (Detail * 8)()
details = Details(version(Details, 1), 0, 8, room)
ok(n.nvmlDeviceGetRunningProcessDetailList(g, c.byref(details)))
kind, many, values = c.c_int(), c.c_uint(8), (Value * 8)()
code = n.nvmlDeviceGetSamples(g, 1, u64(0), c.byref(kind), c.byref(many), values)
mode, pids, few = c.c_int(7), (c.c_uint * 8)(), c.c_uint(8)
ok(n.nvmlDeviceGetAccountingMode(g, c.byref(mode)))
def smi(*words):
    return subprocess.run([sys.argv[3], *words], capture_output=True, text=True, check=True).stdout
print(json.dumps({
    "pid": os.getpid(),
    "memory": [memory(g)[1], second.used // MIB],
    "processes": [processes(g), processes(g, form="", kind=One), processes(g, form="_v2"),
                  [(one.pid, one.bytes // MIB) for one in room[: details.count]]],
    "utilisation": utilisation(g), "samples": samples(g),
    "gpu samples": [values[i].number for i in range(many.value)] if code == 0 else code,
    "accounting": [mode.value, n.nvmlDeviceGetAccountingPids(g, c.byref(few), pids),
                   n.nvmlDeviceGetAccountingStats(g, 1, pids)],
    "query": smi("--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"),
    "apps": smi("--query-compute-apps=pid,used_memory,name", "--format=csv,noheader,nounits"),
    "pmon": smi("pmon", "-c", "1"), "report": smi("-q"),
}))
"""


def in_session(standin: Standin, session: Shim, driver: str) -> dict[str, object]:
    """What a process that is PID 1 of a namespace sees, after it kept the GPU busy for 200 ms."""
    text = PREAMBLE + ASK + PROGRAM
    done = subprocess.run(
        [*NAMESPACE, sys.executable, "-c", text, session.cuda, session.nvml, standin.smi],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={"STANDIN_DRIVER": driver, "LD_LIBRARY_PATH": str(session.libraries)},
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, object] = json.loads(done.stdout)
    assert seen["pid"] == 1
    return seen


NEIGHBOUR = (
    "start(); ok(alloc(3000 * MIB)[0])\nfor _ in range(30): run(10000)\nok(d.cuCtxSynchronize())"
)

BUSY_NEIGHBOUR = """
start(); ok(alloc(3000 * MIB)[0]); print("ready", flush=True)
while True: run(10000); ok(d.cuCtxSynchronize())"""


@pytest.mark.parametrize("driver", DRIVERS)
def test_with_roots_figures_all_is_right(standin: Standin, session: Shim, driver: str) -> None:
    note_load(session, BUSY, HELD)
    with running(standin, None, NEIGHBOUR):
        seen = in_session(standin, session, driver)
    assert seen["memory"] == [164, 164]
    assert seen["processes"] == [[[1, 164]]] * 4
    assert (seen["utilisation"], seen["samples"], seen["gpu samples"]) == (80, [[1, 80]], [80])
    assert seen["query"] == "80, 164\n"
    assert seen["accounting"] == [0, 3, 3]


@pytest.mark.parametrize("driver", DRIVERS)
def test_without_a_watchdog(standin: Standin, session: Shim, driver: str) -> None:
    """What the driver does not translate is missing then, and what it does is right."""
    with running(standin, None, NEIGHBOUR):
        seen = in_session(standin, session, driver)
    context = 64 if int(driver) >= 565 else 0
    assert seen["memory"] == [100 + context] * 2
    assert seen["processes"] == [[[1, 100 + context]]] * 4
    samples = (80, [[1, 80]], [80]) if int(driver) >= 570 else (0, 6, [0])
    assert (seen["utilisation"], seen["samples"], seen["gpu samples"]) == samples
    assert seen["query"] == f"{samples[0]}, {100 + context}\n"


@pytest.mark.parametrize("driver", DRIVERS)
def test_nvidia_smis_own_list_is_the_drivers(standin: Standin, session: Shim, driver: str) -> None:
    """Past the shim: neighbours are hidden by the PID namespace, if the driver knows of it."""
    note_load(session, BUSY, HELD)
    with running(standin, None, NEIGHBOUR) as neighbour:
        seen = in_session(standin, session, driver)
    apps = [line.split(", ") for line in str(seen["apps"]).splitlines()]
    if driver == "535":
        by_pid = {int(pid): (int(memory), name) for pid, memory, name in apps}
        assert by_pid.pop(neighbour.pid) == (3064, "[Not Found]")
        assert [memory for memory, _ in by_pid.values()] == [164]  # its own, by the host's PID
    else:
        assert apps == [["1", "164" if int(driver) >= 565 else "0", sys.executable]]
    report = str(seen["report"])
    assert f"{'Process ID':<30}: {apps[0][0]}" in report
    assert f"{'Gpu':<30}: 80 %" in report  # of the slice, by the public functions
    assert f"{'Used':<30}: 164 MiB" in report
    row = str(seen["pmon"]).splitlines()[-1].split()
    if int(driver) >= 570:
        assert row[1:4] == ["1", "C", "20"]  # of the whole GPU
    elif driver != "535":
        assert row[1:4] == ["1", "C", "-"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_neighbour_with_the_same_number_on_the_host(
    standin: Standin, session: Shim, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples of neighbours have the PID on the host, here 1: not the session's PID 1."""
    note_load(session, BUSY, HELD)
    monkeypatch.setenv("STANDIN_HOST_PID", "1")
    with running(standin, None, BUSY_NEIGHBOUR):
        monkeypatch.delenv("STANDIN_HOST_PID")
        seen = in_session(standin, session, driver)
    assert seen["processes"] == [[[1, 164]]] * 4
    assert seen["memory"] == [164, 164]
    assert (seen["utilisation"], seen["samples"]) == (80, [[1, 80]])
