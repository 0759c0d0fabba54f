"""The watchdog beside processes, cgroups and files whose names users have made up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from portal.node.common.fgpu import MIB
from tests.support.untrusted_names import names
from tests.unit.node.gpu.watchdog.conftest import Node, killed

LONGEST_NAME = 15
AT_ONCE = 1000
FIRST_PID = 1 << 22
"""More than any PID, so that none of these is ended."""


def _beside(node: Node, make: Callable[[int, bytes], None], odd: list[bytes]) -> None:
    """In each poll with many odd processes an offender is ended, and figures go on."""
    for pid in range(FIRST_PID, FIRST_PID + AT_ONCE):
        (node.proc / str(pid)).mkdir(parents=True)
        node.name(pid, b"python3")
        node.threads(pid, exiting=[False])
        node.move(pid, 12)
    for start in range(0, len(odd), AT_ONCE):
        some = odd[start : start + AT_ONCE]
        node.nvml.held["GPU-0"] = {}
        for pid, name in enumerate(some, FIRST_PID):
            make(pid, name)
            node.nvml.held["GPU-0"][pid] = MIB // 64
        offender = node.process(12, 4000)
        node.look(2)
        assert killed(offender)
        assert node.usage(12)["time"] == round(node.now, 1)
        assert node.usage(12)["processes"] == len(some) + 1
    assert [text for text in node.logged if "ended python3" not in text] == []


def test_names_of_processes(node: Node) -> None:
    """`ShdPnd: zz` after a separator ended the watchdog; `ShdPnd: 100` was believed."""
    node.job(12)
    _beside(node, node.name, names(LONGEST_NAME))


def test_a_name_excuses_nobody(node: Node) -> None:
    """An offender that claims by its name to be dying is ended like any other."""
    node.job(12)
    for name in (
        b"\x0bShdPnd: 100",
        b"\nShdPnd: 100",
        b") X 1 2 3 4 4",
        b"\xff\xe2\x80\xa8ShdPnd: 1",
    ):
        child = node.process(12, 4000)
        node.name(child.pid, name[:LONGEST_NAME])
        node.look(2)
        assert killed(child)
        node.nvml.held["GPU-0"] = {}
        node.look(2)
    assert all("\n" not in text and text.isprintable() for text in node.logged)


def test_names_of_cgroups(node: Node) -> None:
    """Of one below a job's own, which is the job's whatever it is called."""
    node.job(12)
    node.job(9)
    base = b"0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0/"

    def make(pid: int, name: bytes) -> None:
        name = name.replace(b"\n", b"")  # the kernel permits none
        (node.proc / str(pid) / "cgroup").write_bytes(base + name + b"\n")

    lines = [b"\x0b0::/slurmstepd.scope/job_9/x", b"\xe2\x80\xa90::/slurmstepd.scope/job_9"]
    _beside(node, make, [*lines, *names(255)])
    assert node.usage(9)["processes"] == 0


def test_names_of_mapped_files(node: Node) -> None:
    """A file called nvidia-uvm was managed memory, and a forged line ended the watchdog."""
    node.job(12)
    start = 0x7F0000000000

    def make(pid: int, name: bytes) -> None:
        escaped = name.replace(b"\n", b"\\012")
        line = b"%x-%x rw-s 00000000 00:99 7 /home/m/" % (start, start + (8 << 30))
        text = line + escaped + b"\n" + line + escaped + b"/nvidia-uvm\n"
        (node.proc / str(pid) / "maps").write_bytes(text)

    for pid, name in enumerate(names(200, 2000), FIRST_PID):
        (node.proc / str(pid)).mkdir(parents=True)
        make(pid, name)
        assert node.watch._processes.managed(pid) == 0
    assert node.logged == []


def test_one_process_that_cannot_be_read_costs_its_own_measurement(node: Node) -> None:
    node.job(12)
    node.job(13)
    odd, offender = node.process(12, 4000), node.process(12, 4000)
    for file in ("status", "stat", "comm"):
        (node.proc / str(odd.pid) / file).write_bytes(b"ShdPnd:\tzz\nUid:\t\n")
    (node.proc / str(odd.pid) / "task" / str(odd.pid) / "stat").write_bytes(b"")
    neighbour = node.process(13, 500)
    node.look(3)
    assert killed(odd)
    assert killed(offender)
    assert not killed(neighbour)
    assert node.usage(13)["memory"] == 500 * MIB
    said = [text for text in node.logged if f"PID {odd.pid}:" in text]
    assert [text.split(" cannot")[0] for text in said] == [f"PID {odd.pid}: its status"]


def test_unreadable_mappings_of_one_job_shield_it_and_nobody_else(node: Node) -> None:
    """Beside it in the same job, managed memory is still found."""
    node.job(12)
    child, other = node.process(12, 100), node.process(12, 100)
    node.map_managed(child.pid, 6000)
    (node.proc / str(other.pid) / "maps").write_bytes(b"what is this\n")
    node.nvml.in_use["GPU-0"] = 5200 * MIB
    node.look(2)
    assert killed(child)


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("y"), RecursionError(), MemoryError()])
def test_a_poll_survives_every_exception_and_says_so_once(node: Node, error: Exception) -> None:
    node.job(12)
    offender = node.process(12, 4000)
    poll = node.watch._jobs.follow, node.watch._measure_gpu, node.watch._jobs.sweep

    def fail(*_: object) -> None:
        raise error

    node.watch._jobs.follow = fail  # type: ignore[method-assign, assignment]
    node.watch._jobs.sweep = fail  # type: ignore[method-assign, assignment]
    node.watch._measure_gpu = fail  # type: ignore[method-assign, assignment]
    node.look(5)
    node.watch._jobs.follow = poll[0]  # type: ignore[method-assign]
    node.look(1)
    assert len(node.logged) == 4  # each of the three once, and that one is well again
    node.watch._measure_gpu = poll[1]  # type: ignore[method-assign]
    node.watch._jobs.sweep = poll[2]  # type: ignore[method-assign]
    node.look(2)
    assert killed(offender)


def test_one_gpus_exception_does_not_protect_the_others(node: Node) -> None:
    node.job(12)
    node.job(13)
    offender = node.process(12, 4000)
    node.nvml.busy = _fails  # type: ignore[method-assign, assignment]
    node.look(3)
    assert not killed(offender)
    del node.nvml.busy
    node.watch._neighbours.record = _fails  # type: ignore[method-assign, assignment]
    node.look(2)
    assert killed(offender)


def _fails(*_: object) -> None:
    raise TypeError("odd")
