"""Several sessions in one launch: all or none, whatever happens in between."""

from __future__ import annotations

import json

import pytest

from portal.adapters.ssh.transport import Completed
from portal.core.session.query import ListQuery, Page
from portal.core.session.session import Session, State
from portal.errors import Conflict, InvalidRequest, OutcomeUnknown, Unavailable
from portal.web.api.models.sessions import SessionContext, SessionOut
from tests.support.fakes import World
from tests.support.launches import REFUSED, launch_request, live_jobs, settle
from tests.support.login_node import Call
from tests.support.sessions import ALICE
from tests.support.slurm import CONTACT

SECRET = "open-sesame"


class Crash(BaseException):
    """The process is killed."""


def fail_at(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int, end: Completed | BaseException
) -> None:
    """Make this submission and all later ones end this way."""
    real, seen = world.slurm.programs["sbatch"], []

    def sbatch(call: Call) -> Completed:
        seen.append(call)
        if len(seen) < number:
            return real(call)
        if isinstance(end, BaseException):
            raise end
        return end

    monkeypatch.setitem(world.slurm.programs, "sbatch", sbatch)


def states(world: World, batch: list[Session]) -> set[str]:
    found = [world.store.get(session.id) for session in batch]
    return {session.state for session in found if session}


def test_all_are_launched_with_numbered_names(world: World) -> None:
    made = world.launch_all(ALICE, launch_request(3, name="many", env={"KEY": SECRET}))
    assert [session.name for session in made] == ["many1", "many2", "many3"]
    assert {session.state for session in made} == {State.PENDING}
    assert [job.name for job in world.slurm.jobs] == [session.id for session in made]
    tokens = {json.loads(job.spec)["token"] for job in world.slurm.jobs}
    assert len(tokens) == 3


def test_the_same_key_gives_the_same_sessions_in_their_order(world: World) -> None:
    first = world.launch_all(ALICE, launch_request(12), key="k")
    again = world.launch_all(ALICE, launch_request(12), key="k")
    assert [session.id for session in first] == [session.id for session in again]
    assert len(world.slurm.jobs) == 12
    with pytest.raises(Conflict):
        world.launch_all(ALICE, launch_request(11), key="k")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_one_refusal_removes_all(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with monkeypatch.context() as patch:
        fail_at(world, patch, number, Completed(1, b"", REFUSED))
        with pytest.raises(InvalidRequest):
            world.launch_all(ALICE, launch_request(3, env={"KEY": SECRET}), key="k")
    assert live_jobs(world) == []
    assert world.slurm.folders == set()
    assert world.store.query(ListQuery(), world.clock.now) == Page()
    assert len(world.launch_all(ALICE, launch_request(3), key="k")) == 3


def test_slurm_becomes_silent_during_a_launch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_at(world, patch, 3, Completed(1, b"", CONTACT))
        patch.setitem(world.slurm.programs, "scancel", lambda _: Completed(1, b"", CONTACT))
        with pytest.raises(Unavailable):
            world.launch_all(ALICE, launch_request(3))
    assert len(live_jobs(world)) == 2
    assert {s.state for s in world.store.live()} == {State.ENDING}
    settle(world)
    assert live_jobs(world) == []
    assert world.store.live() == []


@pytest.mark.parametrize("number", [1, 2, 3])
def test_all_are_submitted_after_a_kill_during_a_launch(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with monkeypatch.context() as patch:
        fail_at(world, patch, number, Crash())
        with pytest.raises(Crash):
            world.launch_all(ALICE, launch_request(3, env={"KEY": SECRET}))
    batch = world.store.live()
    assert len(batch) == 3
    settle(world)
    assert states(world, batch) == {State.PENDING}
    assert sorted(live_jobs(world)) == sorted(session.id for session in batch)
    assert all(json.loads(job.spec)["env"] == {"KEY": SECRET} for job in world.slurm.jobs)


@pytest.mark.parametrize("end", [Completed(1, b"", REFUSED), OutcomeUnknown("cut")])
def test_none_remains_after_a_kill_and_a_refusal(
    world: World, monkeypatch: pytest.MonkeyPatch, end: Completed | BaseException
) -> None:
    with monkeypatch.context() as patch:
        fail_at(world, patch, 3, Crash())
        with pytest.raises(Crash):
            world.launch_all(ALICE, launch_request(3))
        patch.undo()
        batch = world.store.live()
        fail_at(world, patch, 1, end)
        settle(world)
    assert live_jobs(world) == []
    assert world.store.live() == []
    ended = [world.store.get(session.id) for session in batch]
    texts = sorted(str(session.end_text) for session in ended if session)
    assert len(texts) == 3
    assert sum("did not accept all sessions of this launch" in text for text in texts) == 2


def test_a_refusal_that_the_worker_receives_is_not_lost_by_a_kill(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_at(world, patch, 1, Crash())
        with pytest.raises(Crash):
            world.launch_all(ALICE, launch_request(1))
    [session] = world.store.live()
    with monkeypatch.context() as patch:
        fail_at(world, patch, 1, Completed(1, b"", REFUSED))
        patch.setattr(world.services.launcher._teardown, "close_apps", _crash)
        world.clock.advance(seconds=65)
        with pytest.raises(Crash):
            world.services.reconciler.poll()
    settle(world)
    end = world.store.get(session.id)
    assert end is not None
    assert (end.state, "AssocMaxSubmitJobLimit" in str(end.end_text)) == (State.FAILED, True)


def test_a_kill_while_a_refused_launch_is_undone_leaves_the_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_at(world, patch, 1, Completed(1, b"", REFUSED))
        patch.setattr(world.services.launcher._teardown, "close_apps", _crash)
        with pytest.raises(Crash):
            world.launch_all(ALICE, launch_request(2))
    settle(world)
    page = world.store.query(ListQuery(), world.clock.now)
    assert {(session.state, session.end_text) for session in page.sessions} == {
        (State.FAILED, page.sessions[0].end_text)
    }
    assert "AssocMaxSubmitJobLimit" in str(page.sessions[0].end_text)


def _crash(_: str) -> None:
    raise Crash


def test_sessions_with_lost_responses_are_recovered(world: World) -> None:
    world.slurm.lose_answer = True
    batch = world.launch_all(ALICE, launch_request(3))
    assert {session.state for session in batch} == {State.SUBMITTING}
    world.slurm.lose_answer = False
    settle(world)
    assert states(world, batch) == {State.PENDING}
    assert len(world.slurm.jobs) == 3


def test_all_are_submitted_by_the_same_process_however_slow_slurm_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = world.slurm.programs["sbatch"]

    def slow(call: Call) -> Completed:
        world.clock.advance(seconds=17)
        world.services.waiting_sessions.renew()
        world.services.reconciler.poll()
        return real(call)

    monkeypatch.setitem(world.slurm.programs, "sbatch", slow)
    batch = world.launch_all(ALICE, launch_request(5))
    assert [job.name for job in world.slurm.jobs] == [session.id for session in batch]
    assert [session.attempts for session in batch] == [1] * 5


def _shown(world: World, session: Session) -> SessionOut:
    context = SessionContext(world.status.slurm_status(), world.clock.now)
    return SessionOut.of(session, [], [], context)


def test_variables_are_in_the_secret_part_only(world: World) -> None:
    session = world.launch(ALICE, launch_request(1, env={"KEY": SECRET}))
    job = world.slurm.jobs[0]
    assert json.loads(job.spec)["env"] == {"KEY": SECRET}
    assert SECRET not in job.script
    assert SECRET not in "".join(world.slurm.commands)
    assert SECRET not in session.model_dump_json()
    shown = _shown(world, session)
    assert shown.env == ["KEY"]
    assert SECRET not in shown.model_dump_json()
    assert world.store.env(session.id) == {"KEY": SECRET}


@pytest.mark.parametrize(("given", "told"), [("64m", (64, True)), (None, (300, False))])
def test_the_size_of_shared_memory(world: World, given: str | None, told: tuple[int, bool]) -> None:
    resources = {"cpus": 1, "memory": "600m"} | ({"shared_memory": given} if given else {})
    session = world.launch(ALICE, launch_request(1, resources=resources))
    wanted = json.loads(world.slurm.jobs[0].spec)["shared_memory"]
    assert (wanted["mb"], wanted["must"]) == told
    assert _shown(world, session).resources.shared_memory == f"{told[0]}m"
