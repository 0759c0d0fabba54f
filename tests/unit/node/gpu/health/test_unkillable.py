"""Processes that SIGKILL does not end: they wait for a FUSE daemon, or are traced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from portal.node.gpu.cgroups import Step
from portal.node.gpu.health.fuse import CONNECTIONS, Fuse
from portal.node.gpu.health.members import Member
from portal.node.gpu.health.unkillable import Freed, Unkillable
from portal.node.gpu.watchdog.processes import Processes
from tests.unit.node.gpu.health.conftest import Machine, mount

Pause = Callable[[float], None]
TASK = "job_12/step_0/user/task_0"


def free(
    machine: Machine, earlier: list[str] | None = None, pause: Pause = lambda seconds: None
) -> Freed:
    """One look; a pause takes no time."""
    processes = Processes(machine.proc.folder)
    return Unkillable(machine.look, machine.fuse, processes, pause).free(earlier or [])


def freed(machine: Machine, earlier: list[str] | None = None) -> list[str]:
    """What was done."""
    return free(machine, earlier).messages


def test_the_connection_of_a_step_that_cannot_be_killed_is_aborted(machine: Machine) -> None:
    machine.proc.add(70, TASK, killed=True, mounts=mount(30) + mount(48))
    machine.connect(48, 1001, 70)
    machine.connect(49, 1001)  # in no mount that it sees
    machine.connect(30, 1002)  # the node's own, of somebody else
    (said,) = freed(machine)
    assert machine.aborted == [48]
    assert said == (
        "job 12: aborted FUSE connection 48 of UID 1001, since PID 70 could not be killed"
    )


@pytest.mark.parametrize(
    ("number", "uid", "waiting"),
    [
        (30, 1002, 1),  # mounted by somebody else where all can see it
        (48, 0, 1),  # root's
        (48, 1001, 0),  # nobody waits for it
        (49, 1002, 1),  # not seen, and somebody else's
    ],
)
def test_what_is_not_aborted(machine: Machine, number: int, uid: int, waiting: int) -> None:
    machine.proc.add(70, TASK, killed=True, mounts=mount(30) + mount(48))
    machine.connect(number, uid, waiting=waiting)
    assert freed(machine) == []
    assert machine.aborted == []


def test_a_connection_of_a_subordinate_uid_is_the_jobs_own(machine: Machine) -> None:
    """fakeroot: the mount is in a namespace of the job's, where the node does not see it."""
    machine.proc.add(70, TASK, killed=True, mounts=mount(48))
    machine.connect(48, 100007, 70)
    assert len(freed(machine)) == 1


def test_a_step_with_a_living_process_is_left_alone(machine: Machine) -> None:
    machine.proc.add(70, TASK, killed=True, mounts=mount(48))
    machine.proc.add(71, TASK)
    machine.connect(48, 1001, 70)
    assert freed(machine) == []


def test_another_step_may_serve_it_for_a_while(machine: Machine) -> None:
    machine.proc.add(70, TASK, killed=True, mounts=mount(48))
    machine.proc.add(71, "job_12/step_batch/user/task_0")
    machine.connect(48, 1001, 70)
    found = free(machine)
    assert found.messages == []
    assert len(freed(machine, [one.mark for one in found.stuck])) == 1


def test_a_process_that_ends_by_itself_costs_nothing(machine: Machine) -> None:
    machine.proc.add(70, TASK, killed=True, mounts=mount(48))
    machine.connect(48, 1001)
    assert free(machine, pause=lambda seconds: machine.proc.remove(70)).messages == []
    assert machine.aborted == []


def test_a_mount_that_is_gone_is_found_by_its_user(machine: Machine) -> None:
    """Detached while a file of it was open, so that it is among no mounts."""
    machine.proc.add(70, TASK, killed=True)
    machine.proc.add(80, "job_13/step_0/user/task_0", uid=1002, killed=True, waits=False)
    machine.connect(48, 1001, 70)
    machine.connect(49, 1002)
    assert len(freed(machine)) == 1
    assert machine.aborted == [48]  # 80 waits for something else


def test_the_connections_of_many_mounts_are_aborted_at_one_check(machine: Machine) -> None:
    """A process closes its files one after the other, each of which may wait (two a check)."""
    machine.proc.add(70, TASK, killed=True, mounts=b"".join(map(mount, range(48, 148))))

    def close_next(seconds: float) -> None:
        if next_ones and not any(machine.connections.iterdir()):
            number = next_ones.pop(0)
            machine.connect(number, 1001, *([] if next_ones else [70]))

    next_ones = list(range(48, 148))
    found = free(machine, pause=close_next)
    assert machine.aborted == list(range(48, 148))
    assert {job for job, _ in found.actions} == {12}
    assert machine.look() == []


def test_a_healthy_file_system_of_a_process_that_does_not_wait_stays(machine: Machine) -> None:
    """It frees its memory, while another step of the same user reads from the same mount."""
    machine.proc.add(70, TASK, killed=True, mounts=mount(48), waits=False)
    machine.connect(48, 1001)
    assert freed(machine) == []


def test_whoever_waits_for_another_who_waits(machine: Machine) -> None:
    """The lock of a folder of a detached mount, whose UID is a subordinate one of the user's."""
    machine.proc.add(70, TASK, killed=True)
    machine.proc.add(71, "job_13/step_0/user/task_0")
    machine.connect(48, 100_007, 70)
    machine.connect(49, 200_007)
    assert freed(machine) == []
    machine.subuid.write_bytes(b"\xff:1:2\nbroken\n1001:100000:65536\n1002:200000:65536\n")
    assert len(freed(machine)) == 1
    assert machine.aborted == [48]


def test_one_that_cannot_be_read_is_said(machine: Machine) -> None:
    machine.proc.add(70, TASK, killed=True, mounts=mount(48))
    machine.connect(48, 1001, 70)
    machine.fuse.abort = Mock(side_effect=OSError("read-only"))  # type: ignore[method-assign]
    assert freed(machine) == ["job 12: PID 70 cannot be freed: read-only"]


TRACED = """
import time
print("runs", flush=True)
time.sleep(60)
"""
# Seizes a process such that it stops at its exit until its tracer lets it go on.
TRACER = """
import ctypes, os, sys, time
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
SEIZE, TRACEEXIT = 0x4206, 0x40
assert ptrace(SEIZE, int(sys.argv[1]), 0, TRACEEXIT) == 0, ctypes.get_errno()
print("traces", flush=True)
time.sleep(60)
"""


def child(code: str, *words: str, uid: int) -> subprocess.Popen[bytes]:
    """A process of a user's, once it has printed a line."""
    argv = ["setpriv", "--reuid", str(uid), "--clear-groups", sys.executable, "-c", code, *words]
    running = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert running.stdout
    assert running.stdout.readline()
    return running


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("uid", [1001, 0])
def test_whoever_traces_it_is_ended_unless_it_is_roots(machine: Machine, uid: int) -> None:
    with child(TRACED, uid=1001) as traced, child(TRACER, str(traced.pid), uid=uid) as tracer:
        try:
            traced.kill()
            time.sleep(0.5)
            assert traced.poll() is None  # it cannot be killed
            assert Processes().is_dying(traced.pid)
            stuck = Member(traced.pid, "a", 1001, Step(12, "0"), True)
            look = lambda: [] if traced.poll() is not None else [stuck]  # noqa: E731
            pause = lambda seconds: time.sleep(0.3)  # noqa: E731
            fuse = Fuse(machine.connections)
            said = Unkillable(look, fuse, Processes(), pause).free().messages
            because = f"since PID {traced.pid} could not be killed: it traced it"
            assert said == ([f"job 12: ended PID {tracer.pid}, {because}"] if uid else [])
        finally:
            tracer.kill()
        assert traced.wait(20) == -signal.SIGKILL


@pytest.mark.parametrize("number", range(1, 256))
def test_mounts_of_any_name(machine: Machine, number: int) -> None:
    """The kernel escapes what divides the fields and lines of mountinfo, and nothing else."""
    byte = bytes([number])
    if byte in b" \t\n\\#":
        byte = b"\\%03o" % number
    name = b"/" + byte + b"54 0:30"
    lines = mount(31, b"ext4") + mount(48, b"fuse." + byte, name.replace(b" ", b"\\040"))
    machine.proc.add(70, TASK, killed=True, mounts=lines, name=byte)
    machine.connect(48, 1001, 70)
    machine.connect(31, 1001)
    machine.fuse.hidden_from = lambda member, waiting: set()  # type: ignore[method-assign]
    assert len(freed(machine)) == 1
    assert machine.aborted == [48]


# A daemon that answers nothing, whose descriptor another process has, and a process that waits.
DAEMON = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=40000,user_id=1001,group_id=1001,allow_other" % fuse
name = b"fuse.\\x0bx", b"\\xffy z"
assert libc.mount(name[1], sys.argv[1].encode(), name[0], 0, options) == 0, ctypes.get_errno()
begin = os.read(fuse, 1 << 20)
unique = struct.unpack("=IIQQ", begin[:24])[2]
flags = struct.pack("=IIIIHHII36x", 7, 31, 0, 0, 0, 0, 1 << 17, 1)
os.write(fuse, struct.pack("=IiQ", 16 + len(flags), 0, unique) + flags)
print("mounted", flush=True)
while True:
    os.read(fuse, 1 << 20)  # what is read and not answered cannot be killed
    print("read", flush=True)
"""
WAITING = """
import os, sys
os.setgid(1001); os.setuid(1001)
print("waits", flush=True)
os.stat(sys.argv[1] + "/x")
"""


def _can_mount() -> bool:
    return os.geteuid() == 0 and Path("/dev/fuse").exists() and CONNECTIONS.is_dir()


@pytest.mark.skipif(not _can_mount(), reason="needs root and FUSE")
@pytest.mark.parametrize("first", [signal.SIGKILL, signal.SIGTERM])  # Slurm sends both
def test_a_real_connection(first: signal.Signals) -> None:
    place = Path(tempfile.mkdtemp(dir="/tmp"))  # which another user can reach
    place.chmod(0o755)
    pipe = subprocess.PIPE
    unshared = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", DAEMON]
    with subprocess.Popen([*unshared, str(place)], stdout=pipe) as daemon:
        assert daemon.stdout
        assert daemon.stdout.readline() == b"mounted\n"
        inside = ["nsenter", "--mount", f"--target={daemon.pid}"]
        argv = [*inside, sys.executable, "-c", WAITING, str(place)]
        with subprocess.Popen(argv, stdout=pipe) as waiting:
            try:
                assert waiting.stdout and waiting.stdout.readline() == b"waits\n"
                assert daemon.stdout.readline() == b"read\n"
                _wait_until_stuck(waiting.pid)
                waiting.send_signal(first)
                waiting.kill()
                time.sleep(0.5)
                assert waiting.poll() is None  # it cannot be killed
                processes = Processes()

                def look() -> list[Member]:
                    mark, uid = processes.mark(waiting.pid), processes.uid(waiting.pid)
                    dying = processes.is_dying(waiting.pid)
                    gone = waiting.poll() is not None
                    return [] if gone else [Member(waiting.pid, mark, uid, Step(12, "0"), dying)]

                pause = lambda seconds: time.sleep(0.5)  # noqa: E731
                (said,) = Unkillable(look, Fuse(), processes, pause).free().messages
                assert "of UID 1001" in said
                assert waiting.wait(20) == -first
            finally:
                daemon.kill()
    place.rmdir()


def _wait_until_stuck(pid: int) -> None:
    until = time.monotonic() + 60
    while "request_wait_answer" not in Path(f"/proc/{pid}/wchan").read_text():
        assert time.monotonic() < until
        time.sleep(0.05)
