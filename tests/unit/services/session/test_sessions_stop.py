"""Ending many sessions: all are marked first, then cancelled per owner, and retried on failure."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from portal.adapters.ssh.transport import Completed
from portal.core.admin.audit import AuditFilter
from portal.core.auth.person import Person
from portal.core.launch.request import parse_launch
from portal.core.session.query import ListQuery, end_reason
from portal.core.session.session import Session, State
from portal.errors import NotFound
from tests.support.fakes import World, make_world
from tests.support.login_node import Call
from tests.unit.web.conftest import make_settings

ALICE = Person("alice", admin=False, login="a")
BOB = Person("bob", admin=False, login="b")
ADMIN = Person("admin", admin=True, login="c")
REQUEST = parse_launch({"environment": "python", "resources": {"cpus": 1, "memory": "600m"}})


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal over the fakes."""
    return make_world(make_settings(tmp_path))


def launch(world: World, *people: Person) -> list[Session]:
    """Launch a session for each of these users."""
    return [world.launch(person, REQUEST) for person in people]


def states(world: World) -> set[State]:
    """The states of all sessions."""
    return {s.state for s in world.store.query(ListQuery(), world.clock.now).sessions}


def cancels(world: World) -> list[tuple[str, set[str]]]:
    """The owners whose jobs were cancelled, by command."""
    told = [line.split() for line in world.slurm.commands if "scancel" in line]
    return sorted((words[0].rstrip(":"), set(words[3:])) for words in told)


def test_one_command_for_each_owner(world: World) -> None:
    made = launch(world, ALICE, BOB, ALICE)
    ended = world.sessions.stop_all(ADMIN, [s.id for s in made])
    assert [s.id for s in ended] == [s.id for s in made]
    assert {s.stopped_by for s in ended} == {"admin"}
    assert states(world) == {State.ENDING}
    assert cancels(world) == [("alice", {"1", "3"}), ("bob", {"2"})]


@pytest.mark.parametrize("strange", ["of bob", "0" * 32, "", "x\0", "' OR 1=1 --"])
def test_with_an_unknown_id_no_session_is_changed(world: World, strange: str) -> None:
    mine, bobs = launch(world, ALICE, BOB)
    wanted = [mine.id, bobs.id if strange == "of bob" else strange]
    with pytest.raises(NotFound) as caught:
        world.sessions.stop_all(ALICE, wanted)
    assert not any(session.id in str(caught.value) for session in (mine, bobs))
    assert states(world) == {State.PENDING}
    assert cancels(world) == []


def test_duplicates_and_ended_sessions_are_accepted(world: World) -> None:
    first, second = launch(world, ALICE, ALICE)
    world.sessions.stop(ALICE, first.id)
    world.worker.poll()
    ended = world.sessions.stop_all(ALICE, [first.id, second.id, second.id])
    assert [s.id for s in ended] == [first.id, second.id]
    assert cancels(world) == [("alice", {"1"}), ("alice", {"2"})]


def test_failed_cancels_are_repeated(world: World) -> None:
    made = launch(world, ALICE, ALICE)
    world.slurm.down = True
    world.sessions.stop_all(ALICE, [s.id for s in made])
    assert states(world) == {State.ENDING}
    world.slurm.down = False
    world.clock.advance(seconds=10)
    world.worker.poll()
    assert [job.state for job in world.slurm.jobs] == ["CANCELLED", "CANCELLED"]


def answer(done: Completed, _call: Call) -> Completed:
    return done


def test_an_ended_job_does_not_hide_other_errors(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = "scancel: error: Kill job error on job id 1: Invalid job id specified\n"
    lost = "scancel: error: Kill job error on job id 2: Unable to contact slurm controller\n"
    for text, succeeded in ((gone, True), (gone + lost, False), ("", False)):
        failed = Completed(1, b"", text)
        monkeypatch.setitem(world.slurm.programs, "scancel", partial(answer, failed))
        try:
            world.scheduler.cancel("alice", "1", "2")
        except Exception as error:
            assert not succeeded, error
        else:
            assert succeeded


def test_a_full_list_is_ended_at_once(world: World) -> None:
    template = launch(world, ALICE)[0]
    many = [
        template.model_copy(update={"id": f"{number:032x}", "job_id": str(1000 + number)})
        for number in range(500)
    ]
    world.store.add(many, None, "", {})
    assert len(world.sessions.stop_all(ALICE, [s.id for s in many])) == 500
    assert len(cancels(world)) == 1


def test_the_owner_reads_the_reason_and_the_journal_has_it(world: World) -> None:
    (made,) = launch(world, ALICE)
    job = world.slurm.jobs[0]
    world.slurm.start(job)
    world.sessions.stop_all(ADMIN, [made.id], "maintenance at ten.")
    world.slurm.finish(job, "CANCELLED")
    assert world.worker.poll()
    ended = world.sessions.get(ALICE, made.id)
    assert ended.end_text == "Ended by admin (an administrator): maintenance at ten."
    entries, _ = world.services.administration.events(
        ADMIN, AuditFilter(action="session.end"), 9, None
    )
    assert entries[0].detail == f"{made.name} of alice: maintenance at ten."


@pytest.mark.parametrize("reason", ["x" * 201, "two\nlines", "\x1b[31mred"])
def test_a_reason_is_one_plain_line(reason: str) -> None:
    with pytest.raises(ValueError, match="printable"):
        end_reason(reason)


def test_a_reason_is_trimmed() -> None:
    assert end_reason("  maintenance ") == "maintenance"
