"""Root's watchdog beside sessions on the stand-in GPU: honest ones lose no process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest

from portal.node.common.fgpu import GpuKind
from portal.node.common.gres import Gres
from portal.node.gpu import memory, slices
from portal.node.gpu.nvml import Nvml
from portal.node.gpu.slices import JobSlice, decide
from portal.node.gpu.watchdog.watch import Watch
from tests.unit.gres.clients import OUT_OF_MEMORY, Client
from tests.unit.gres.conftest import MIB, Shim, Standin
from tests.unit.node.gpu.node import answer

CONTEXT = 64 * MIB
MARGIN = 128 * MIB
KIND = GpuKind("standin8g", "Stand-in", 8192, Fraction(1, 2), Fraction(1, 2))
NOW = 1_795_270_421.0


@dataclass
class Node:
    """A node whose jobs each have a quarter of the GPU."""

    folder: Path
    standin: Standin
    shim: Callable[..., Shim]
    program: Path
    stack: ExitStack
    logged: list[str] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)
    now: float = NOW

    def __post_init__(self) -> None:
        self.watch = Watch(
            MARGIN,
            "n1",
            jobs=self.folder / "jobs",
            proc=self.folder / "proc",
            cgroups=self.folder / "cgroup",
            uvm=self.standin.directory / "nvidia-uvm",
            connect=self.nvml,
            ask=answer(),
            log=self.logged.append,
        )

    def nvml(self) -> Nvml:
        return Nvml(str(self.standin.nvml))

    def slice_of(self, job: int) -> JobSlice:
        """A new job's slice, by Prolog."""
        nvml = self.nvml()
        devices = nvml.devices()
        nvml.close()
        found = decide([Gres("shard", "", 1, ((1, 4),))], [0], devices, [KIND], CONTEXT)
        owner = os.getuid(), os.getgid()
        slices.write(self.folder / "jobs", job, owner, {"slice": found.text()})
        return found

    def session(self, job: int) -> Shim:
        """The shim of a new job's session."""
        made = self.shim(f"job{job}")
        made.grant(*((part.uuid, part.memory, 100) for part in self.slice_of(job).parts))
        return made

    def run(self, job: int, library: Path, **environment: str) -> Client:
        """A program of a job, by the shim or by the driver itself."""
        client = Client(self.program, library, environment=environment)
        self.clients.append(self.stack.enter_context(client))
        real = Path(f"/proc/{client.process.pid}")
        place = self.folder / "proc" / real.name
        place.mkdir(parents=True)
        for name in ("stat", "status", "task", "maps", "map_files", "comm"):
            (place / name).symlink_to(real / name)
        (place / "cgroup").write_text(f"0::/system.slice/slurmstepd.scope/job_{job}/step_0\n")
        return client

    def look(self, times: int = 3) -> None:
        for _ in range(times):
            self.now += 1
            self.watch.poll(self.now)

    @property
    def ended(self) -> list[Client]:
        return [client for client in self.clients if client.process.poll() is not None]

    def usage(self, job: int) -> dict[str, float]:
        found: dict[str, float] = json.loads(
            (self.folder / "jobs" / str(job) / "usage.json").read_text()
        )
        return found


@pytest.fixture
def node(
    tmp_path: Path,
    standin: Standin,
    shim: Callable[..., Shim],
    client_program: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Node]:
    monkeypatch.setattr(memory, "mount", lambda place, size: None)
    standin.reset(mib=8192 + 4 * 64)
    with ExitStack() as stack:
        yield Node(tmp_path, standin, shim, client_program, stack)


def fill(client: Client) -> int:
    """Take what there is in ever smaller pieces; MiB."""
    return sum(mib * int(client.ask("race", mib * MIB)[0]) for mib in (256, 64, 16, 4, 2))


@pytest.mark.parametrize(("mib", "shown"), [(8192 + 4 * 64, 2048), (7900, 1911)])
def test_four_sessions_fill_their_quarters_at_the_same_time(
    node: Node, mib: int, shown: int
) -> None:
    """The last one got an error of the GPU's, below what it was shown."""
    node.standin.reset(mib=mib)
    clients = [node.run(job, node.session(job).cuda) for job in (11, 12, 13, 14)]
    assert [client.unused for client in clients] == [shown * MIB] * 4
    for client in clients:
        assert fill(client) >= 0.99 * shown
    assert node.standin.used() <= node.standin.show()["gpus"][0]["memory"]
    node.look()
    assert node.ended == []
    assert node.logged == []


def test_a_full_slice_and_the_contexts_of_other_processes(node: Node) -> None:
    session = node.session(11)
    fill(node.run(11, session.cuda))
    for _ in range(3):
        node.run(11, session.cuda)
    node.look()
    assert node.ended == []
    assert node.usage(11)["memory"] == 2048 * MIB + 4 * CONTEXT


def test_many_buffers_in_a_full_slice(node: Node) -> None:
    client = node.run(11, node.session(11).cuda)
    client.ask("pieces", MIB, 3 * MIB, 5000)
    assert client.take("plain", 4 * MIB) == OUT_OF_MEMORY
    node.look()
    assert node.ended == []


@pytest.mark.parametrize("kind", ["plain", "managed"])
def test_who_bypasses_the_shim_is_ended_and_nobody_else(node: Node, kind: str) -> None:
    honest = node.run(12, node.session(12).cuda)
    assert honest.take("managed", 2048 * MIB) == 0
    node.session(11)
    small = node.run(11, node.standin.cuda)
    thief = node.run(11, node.standin.cuda)
    assert thief.take(kind, 4096 * MIB) == 0
    node.look(1)
    assert node.ended == []
    node.look(1)
    thief.process.wait(10)
    node.look()
    assert node.ended == [thief]
    assert small.process.poll() is None
    assert (node.usage(11)["kills"], node.usage(12)["kills"]) == (1, 0)


def test_managed_memory_is_in_no_processs_figure(node: Node) -> None:
    """As with a real driver: so the case above is not found by the figures of processes."""
    client = node.run(11, node.session(11).cuda)
    assert client.take("managed", 1024 * MIB) == 0
    nvml = node.nvml()
    (uuid,) = (device.uuid for device in nvml.devices())
    assert nvml.processes(uuid) == {client.process.pid: CONTEXT}
    assert nvml.used(uuid) == CONTEXT + 1024 * MIB
    nvml.close()


@pytest.mark.parametrize("counts", [{}, {"STANDIN_IMPORTS_COUNT": "1"}])
def test_imported_memory_whether_the_driver_counts_it_twice_or_not(
    node: Node, counts: dict[str, str]
) -> None:
    session = node.session(11)
    exporter = node.run(11, session.cuda)
    assert exporter.take("plain", 2000 * MIB) == 0
    handle = exporter.ask("export", 0)[1]
    importer = node.run(11, session.cuda, **counts)
    assert importer.ask("import_and_keep", handle) == ["0"]
    node.look(1)
    assert node.usage(11)["memory"] == (4000 if counts else 2000) * MIB + 2 * CONTEXT
    node.look()
    assert node.ended == []


def test_a_killed_process_and_its_successor(node: Node) -> None:
    """The driver has the dead one's memory for a moment; the successor was ended for it."""
    session = node.session(11)
    killed = node.run(11, session.cuda, STANDIN_LINGER_MS="60000")
    assert killed.take("plain", 2000 * MIB) == 0
    killed.kill()
    successor = node.run(11, session.cuda)
    assert successor.take("plain", 2000 * MIB) == 0
    node.look()
    assert successor.process.poll() is None
    # The driver says that the GPU is fuller than all processes together; nobody can be blamed.
    assert [line for line in node.logged if "nobody is ended" not in line] == []
