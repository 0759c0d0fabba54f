"""A session's view of its GPU through NVML and nvidia-smi: its slice and its own processes."""

from __future__ import annotations

import subprocess
import sys

from tests.unit.gres.conftest import MIB, UUID, Shim, Standin
from tests.unit.gres.nvml.sessions import ASK, NAMESPACE, SLICE, ask, running, smi
from tests.unit.gres.programs import CONTEXT, PREAMBLE, RESERVED


def test_memory_is_the_slice_and_neighbours_are_hidden(standin: Standin, session: Shim) -> None:
    with running(standin, None, "start(); ok(alloc(3000 * MIB)[0])"):
        assert ask(session, "print(memory(handle()))") == "(2048, 0, 2048)"
        assert ask(session, "print(processes(handle()))") == "[]"
        with running(standin, session, "start(); ok(alloc(1000 * MIB)[0])") as own:
            # Only the driver knows the context's size; it counts as shown.
            assert ask(session, "print(memory(handle()))") == "(2048, 1064, 984)"
            assert ask(session, "print(processes(handle()))") == f"[({own.pid}, 1064)]"
            assert f"{own.pid}" in smi(session, standin)
        assert "0MiB / 2048MiB" in smi(session, standin)


def test_every_form_of_the_queries(standin: Standin, session: Shim) -> None:
    text = """
g = handle()
second = Memory2(version(Memory2, 2)); ok(n.nvmlDeviceGetMemoryInfo_v2(g, c.byref(second)))
assert (second.total, second.reserved) == (2048 * MIB, 0)
assert second.used == 164 * MIB and second.free == 1884 * MIB
wrong = Memory2(1); assert n.nvmlDeviceGetMemoryInfo_v2(g, c.byref(wrong)) == 25
own = processes(g)
assert len(own) == 1 and own[0][1] == 164
assert processes(g, form="", kind=One) == own == processes(g, form="_v2")
for name in ("Graphics", "MPSCompute"):
    for form, kind in (("", One), ("_v2", Two), ("_v3", Two)):
        assert processes(g, name, form, kind) == []
many = c.c_uint(0)
assert n.nvmlDeviceGetComputeRunningProcesses_v3(g, c.byref(many), None) == 7 and many.value == 1
room = (Detail * 4)()
details = Details(version(Details, 1), 0, 4, room)
ok(n.nvmlDeviceGetRunningProcessDetailList(g, c.byref(details)))
assert details.count == 1 and (room[0].pid, room[0].bytes // MIB) == own[0]
details = Details(7, 0, 4, room)
assert n.nvmlDeviceGetRunningProcessDetailList(g, c.byref(details)) == 25
assert count() == 1 and uuid(g).startswith("GPU-")
"""
    with (
        running(standin, None, "start(); ok(alloc(MIB)[0])"),
        running(standin, session, "start(); ok(alloc(100 * MIB)[0])"),
    ):
        ask(session, text)


BUSY = "start(); ok(alloc(MIB)[0])\nfor _ in range({}): run({}); ok(d.cuCtxSynchronize())\n"


def test_utilisation_is_of_the_slice(standin: Standin, session: Shim) -> None:
    """A neighbour keeps the GPU busy; the idle session shows none of it."""
    text = "g = handle(); print(utilisation(g), samples(g))"
    with running(standin, None, BUSY.format(1, 1100000)):
        assert ask(session, text) == "0 6"
    # 600 ms of the last second exceed the session's 25 %: 100 % of its share.
    session.grant((UUID.format(0), SLICE, 25), compute="none")
    with running(standin, session, BUSY.format(1, 600000)) as own:
        assert ask(session, text) == f"100 [({own.pid}, 100)]"


def test_only_the_jobs_gpus(standin: Standin, session: Shim) -> None:
    standin.reset(gpus=3)
    session.grant((UUID.format(2), SLICE, 25), (UUID.format(1), 0, 100))
    text = """
found = c.c_void_p()
print(count(), [uuid(handle(i))[-1] for i in range(2)], [memory(handle(i))[0] for i in range(2)])
assert n.nvmlDeviceGetHandleByIndex_v2(2, c.byref(found)) == 2
assert n.nvmlDeviceGetHandleByUUID(b"GPU-51195a90-0000-4000-8000-000000000000", c.byref(found)) == 6
ok(n.nvmlDeviceGetHandleByUUID(b"GPU-51195a90-0000-4000-8000-000000000002", c.byref(found)))
index = c.c_uint(); ok(n.nvmlDeviceGetIndex(found, c.byref(index))); assert index.value == 1
assert n.nvmlDeviceGetHandleByPciBusId_v2(b"00000000:01:00.0", c.byref(found)) == 6
"""
    # A whole GPU, the second here, is shown unchanged.
    assert ask(session, text) == "2 ['1', '2'] [8320, 2048]"
    assert smi(session, standin, "-L").count("GPU-") == 2


def test_a_process_in_a_pid_namespace_of_its_own(standin: Standin, session: Shim) -> None:
    """Sessions run in one: outside it the driver knows the process by another number."""
    asked = "start(); ok(alloc(100 * MIB)[0]); print(os.getpid(), processes(handle()))"
    text = PREAMBLE + ASK + asked
    done = subprocess.run(
        [*NAMESPACE, sys.executable, "-c", text, str(session.cuda), str(session.nvml)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("1 [(1, 164)]\n", "")


def test_functions_without_a_wrapper_come_from_the_driver(standin: Standin, session: Shim) -> None:
    text = """
class Bar(c.Structure): _fields_ = [(x, c.c_ulonglong) for x in ("total", "free", "used")]
bar, driver = Bar(), c.create_string_buffer(80)
ok(n.nvmlDeviceGetBAR1MemoryInfo(handle(), c.byref(bar))); assert bar.total == 256 * MIB
ok(n.nvmlSystemGetDriverVersion(driver, 80)); print(driver.value.decode())"""
    assert ask(session, text) == "580.00.00"


def test_without_a_slice_nothing_is_shown(standin: Standin, session: Shim) -> None:
    (session.directory / "slice").unlink()
    done = subprocess.run(
        [str(standin.smi)],
        capture_output=True,
        text=True,
        check=False,
        env={"LD_LIBRARY_PATH": str(session.libraries)},
    )
    assert done.returncode != 0
    assert "start the session again" in done.stderr
    assert "MiB" not in done.stdout


def test_nvidia_smi_of_the_host_shows_all(standin: Standin) -> None:
    environment = {"LD_LIBRARY_PATH": str(standin.directory)}
    with running(standin, None, "start(); ok(alloc(100 * MIB)[0])") as one:
        table = subprocess.run(
            [str(standin.smi)], capture_output=True, text=True, check=True, env=environment
        ).stdout
        assert "164MiB / 8320MiB" in table
        assert str(one.pid) in table
        fields = "name,uuid,memory.total,memory.used,memory.free,utilization.gpu"
        words = [str(standin.smi), f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
        asked = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    assert asked.stdout == f"Slipway Stand-in 8GB, {UUID.format(0)}, 8320, 164, 8028, 0\n"
    assert (CONTEXT, RESERVED) == (64 * MIB, (8320 - 164 - 8028) * MIB)


def test_nvidia_smi_records_limits_of_cgroups(standin: Standin) -> None:
    words = "--set -n /sys/fs/cgroup/job_1 --soft-limit 0 --hard-limit 2048 -i 0".split()
    noted = standin.directory / "state-limits"
    noted.unlink(missing_ok=True)
    subprocess.run([str(standin.smi), "memory-limits", *words], check=True)
    assert noted.read_text() == " ".join(words) + "\n"
    refused = subprocess.run([str(standin.smi), "memory-limits"], capture_output=True, check=False)
    assert refused.returncode == 2
