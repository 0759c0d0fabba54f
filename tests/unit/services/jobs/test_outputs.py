"""Reading output files: as their owners, bounded, and recorded for other readers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.adapters.ssh.transport import Completed
from portal.core.auth.person import Person
from portal.core.cluster.job_reports import JobState
from portal.core.jobs.output import FilePiece, Reading, Stream
from portal.errors import Conflict, NotFound, Unavailable
from portal.services.jobs.outputs import MAX_READ
from tests.support.fakes import World
from tests.support.measured_jobs import ERR, OUT, TEXTS, end, run

ALICE, BOB = Person("alice", False, "l1"), Person("bob", False, "l2")
ADMIN = Person("admin", True, "l3")


def test_one_read_is_bounded(world: World) -> None:
    run(world)
    world.slurm.files[OUT] = b"x" * (MAX_READ + 9)
    outputs = world.services.job_outputs
    assert len(outputs.read(ALICE, "7", Stream.STDOUT, 0, 10**12).data) == MAX_READ
    assert outputs.read(ALICE, "7", Stream.STDOUT, 0, -5).data == b""
    assert outputs.read(ALICE, "7", Stream.STDOUT, 10**40, 5).offset == 0
    assert outputs.size(ALICE, "7", Stream.STDOUT) == MAX_READ + 9
    assert outputs.size(ALICE, "7", Stream.STDERR) is None


def test_it_is_read_as_its_owner_whoever_reads_it(world: World) -> None:
    run(world)
    world.slurm.files[ERR] = b"oh"
    world.slurm.commands.clear()
    found = world.services.job_outputs.read(ADMIN, "7", Stream.STDERR, None)
    assert found == FilePiece(b"oh", 0, 2)
    assert [line.partition(":")[0] for line in world.slurm.commands] == ["alice"]


def test_only_readings_of_others_are_recorded_once_in_ten_minutes(world: World) -> None:
    job = run(world)
    outputs = world.services.job_outputs
    outputs.read(ALICE, "7", Stream.STDOUT, 0)
    assert outputs.reading(job) is None
    for _ in range(3):
        outputs.read(ADMIN, "7", Stream.STDOUT, 0)
    assert outputs.reading(job) == Reading("admin", world.clock())
    world.clock.advance(minutes=10)
    outputs.read(ADMIN, "7", Stream.STDOUT, 0)
    events = world.systems.stores.administration.events_of("7", ("job.read",), 9)
    assert len(events) == 2


def test_others_find_nothing_and_nothing_is_asked(world: World) -> None:
    run(world)
    world.slurm.commands.clear()
    for number in ("7", "8"):
        with pytest.raises(NotFound, match=r"^There is no such job\.$"):
            world.services.job_outputs.read(BOB, number, Stream.STDOUT, 0)
    assert world.slurm.commands == []


@pytest.mark.parametrize("path", ["", "/dev/null", "relative/path"])
def test_a_path_that_cannot_be_opened_is_not_sent(world: World, path: str) -> None:
    run(world, texts=replace(TEXTS, stdout=path))
    world.slurm.commands.clear()
    with pytest.raises(Conflict):
        world.services.job_outputs.read(ALICE, "7", Stream.STDOUT, 0)
    assert world.slurm.commands == []


def test_a_failing_disk(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    end(world, state=JobState.COMPLETED)
    failed = Completed(1, b"", f"dd: error reading '{OUT}': Input/output error\n")
    monkeypatch.setattr(world.slurm, "run", lambda *_, **__: failed)
    with pytest.raises(Unavailable, match="Input/output error"):
        world.services.job_outputs.read(ALICE, "7", Stream.STDOUT, 0)


def test_an_account_whose_home_is_away(world: World) -> None:
    end(world, state=JobState.COMPLETED)
    world.slurm.homes_away = True
    with pytest.raises(Conflict, match="is not on the login node"):
        world.services.job_outputs.read(ALICE, "7", Stream.STDOUT, 0)
