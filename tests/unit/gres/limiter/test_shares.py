"""Sessions that compute at the same time share the GPU, with the watchdog that they have on a node.

Real processes, in real time, on the stand-in driver, which itself counts what each has used.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from portal.node.gpu.nvml import Nvml
from portal.node.gpu.watchdog import watch
from tests.unit.gres.conftest import MIB, UUID, Standin, make
from tests.unit.node.gpu.node import answer

HERE = Path(__file__).parent
SETTLE = 16.0
"""Seconds until the watchdog has found the charge for all of them."""
MEASURE = 6.0
KERNEL = 5000
"""Microseconds: long enough for two cores, short against the limiter's tolerance."""


class Node:
    """A GPU, its sessions, and a watchdog that knows which process is whose."""

    def __init__(self, folder: Path, standin: Standin, libraries: Path, program: Path) -> None:
        self.folder = folder
        self.jobs = folder / "jobs"
        self.jobs.mkdir()
        self.standin = standin
        self.libraries = libraries
        self.program = program
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.proc = folder / "proc"
        self.logged: list[str] = []

    def session(self, job: int, percent: int, *, policy: str = "strict", us: int = KERNEL) -> None:
        """A job with its folder, and a program in it that is ready to compute."""
        home = self.folder / f"home{job}"
        session = home / "session"
        session.mkdir(parents=True)
        lines = ["version=1", "compute=limiter", f"policy={policy}", f"gpu={UUID.format(0)}"]
        lines += ["memory=1073741824", f"sm={percent}"]
        (session / "slice").write_text("\n".join(lines) + "\n")
        (session / "counters").write_bytes(bytes(MIB))
        (session / "driver").symlink_to(self.standin.directory)
        (self.jobs / str(job)).symlink_to(session)
        process = subprocess.Popen(
            [self.program, self.libraries / "libcuda.so.1", str(us)],
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes[job] = process
        self._show_root(process.pid, job)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"

    def _show_root(self, pid: int, job: int) -> None:
        """The process in /proc as on a node, where Slurm has put it into the job's cgroup."""
        place = self.proc / str(pid)
        place.mkdir(parents=True)
        path = f"/system.slice/slurmstepd.scope/job_{job}/step_batch/user/task_0"
        (place / "cgroup").write_text(f"0::{path}\n")
        for name in ("stat", "comm", "maps", "task", "fd"):
            (place / name).symlink_to(f"/proc/{pid}/{name}")

    def begin(self, *jobs: int) -> None:
        for job in jobs or tuple(self.processes):
            stream = self.processes[job].stdin
            assert stream
            stream.write("go\n")
            stream.flush()

    def shares(self) -> dict[int, float]:
        """Percent of the GPU's time that each job used while it was measured."""
        before = self.standin.show()
        time.sleep(MEASURE)
        after = self.standin.show()
        span = after["now_ns"] - before["now_ns"]

        def busy(shown: dict[str, list[dict[str, list[int]]]]) -> dict[object, int]:
            return {one["pid"]: one["busy_ns"][0] for one in shown["processes"]}

        first, last = busy(before), busy(after)
        return {
            job: 100 * (last[process.pid] - first[process.pid]) / span
            for job, process in self.processes.items()
        }

    def watchdog(self) -> watch.Watch:
        return watch.Watch(
            1024 * MIB,
            "n1",
            jobs=self.jobs,
            proc=self.proc,
            connect=lambda: Nvml(str(self.standin.nvml)),
            ask=answer(),
            log=self.logged.append,
        )


@pytest.fixture(scope="module")
def built(standin_built: Standin, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The shim for a folder `session` of wherever a program runs, and the program."""
    libraries = tmp_path_factory.mktemp("shares")
    make("gres/shim", libraries, DIRECTORY="/proc/self/cwd/session")
    program = libraries / "share_client"
    source = HERE / "share_client.c"
    subprocess.run(["gcc", "-std=gnu11", "-Wall", "-o", program, source, "-ldl"], check=True)
    return libraries, program


@pytest.fixture
def node(tmp_path: Path, standin: Standin, built: tuple[Path, Path]) -> Iterator[Node]:
    """With a watchdog that runs as on a node, once a second."""
    found = Node(tmp_path, standin, *built)
    over = Event()

    def run() -> None:
        watchdog = found.watchdog()
        while not over.wait(watch.PAUSE):
            watchdog.poll(time.time())

    thread = Thread(target=run)
    thread.start()
    yield found
    over.set()
    thread.join()
    for process in found.processes.values():
        process.kill()
        process.communicate()
    assert found.logged == []


Compete = Callable[..., dict[int, float]]


@pytest.fixture
def compete(node: Node) -> Compete:
    """All of them at once, for so many percent each: what each gets."""

    def competed(*percents: int, policy: str = "strict") -> dict[int, float]:
        for job, percent in enumerate(percents, 1):
            node.session(job, percent, policy=policy)
        node.begin()
        time.sleep(SETTLE)
        return node.shares()

    return competed


@pytest.mark.parametrize(("number", "percent", "least"), [(2, 50, 45), (4, 25, 22), (8, 12, 11)])
def test_sessions_that_fill_the_gpu_together_get_all_of_it(
    compete: Compete, number: int, percent: int, least: float
) -> None:
    """Before, 37.5, 17 and 8.2: each was charged for the time of the others.

    An eighth is 12 %, as shares are whole percents.
    """
    shares = compete(*[percent] * number)
    assert min(shares.values()) >= least
    assert max(shares.values()) <= percent + 3


def test_a_strict_share_is_not_exceeded_beside_a_neighbour(compete: Compete) -> None:
    shares = compete(25, 50)
    assert 22 <= shares[1] <= 28
    assert 46 <= shares[2] <= 54


def test_a_fair_share_uses_what_is_idle_and_gives_it_back(node: Node) -> None:
    node.session(1, 25, policy="fair")
    node.session(2, 50, policy="fair")
    node.begin(1)
    time.sleep(SETTLE)
    alone = node.shares()
    assert alone[1] > 85
    node.begin(2)
    time.sleep(SETTLE)

    def is_in_proportion(both: dict[int, float]) -> bool:
        """A third and two: the quarter that nobody has is shared, too."""
        return 29 <= both[1] <= 38 and 58 <= both[2] <= 72

    measured: list[dict[int, float]] = []
    while len(measured) < 3 and not (measured and is_in_proportion(measured[-1])):
        measured.append(node.shares())  # a busy machine may starve a program for some seconds
    assert is_in_proportion(measured[-1]), measured
