"""What Slurm and homes are asked about sessions that may be lost, and how often."""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from portal.core.cluster.job_reports import JobReport
from portal.core.jobs.job import JobTab
from portal.errors import Unavailable
from portal.services.session.evidence import EVIDENCE_LIFETIME, Evidence
from tests.support.adoption import follow_queue, write_proof
from tests.support.fakes import World
from tests.support.slurm import FakeJob

USERS = ("alice", "bob", "carol")


@pytest.fixture
def evidence(world: World) -> Evidence:
    systems = world.systems
    return Evidence(
        jobs=systems.stores.jobs,
        scheduler=systems.scheduler,
        files=systems.files,
        clock=world.clock,
    )


def start_jobs(world: World, numbers: range) -> list[FakeJob]:
    """Running jobs of several users that are named like sessions."""
    jobs = [FakeJob(number, USERS[number % 3], f"{number:032x}", "", "") for number in numbers]
    world.slurm.jobs += jobs
    for job in jobs:
        world.slurm.start(job)
    follow_queue(world)
    world.slurm.commands.clear()
    return jobs


def squeues(world: World) -> int:
    """The number of queries since the last call."""
    number = sum("squeue" in command for command in world.slurm.commands)
    world.slurm.commands.clear()
    return number


def user_of(evidence: Evidence, job: FakeJob) -> str | None:
    report = evidence.job(job.name, JobTab.RUNNING)
    return report.user if report else None


def test_a_query_is_for_all_jobs_that_may_be_lost_sessions(
    world: World, evidence: Evidence
) -> None:
    jobs = start_jobs(world, range(1, 31))
    assert [user_of(evidence, job) for job in jobs] == [job.user for job in jobs]
    assert squeues(world) == 1


def test_a_job_that_has_started_since_is_asked_for_once(world: World, evidence: Evidence) -> None:
    start_jobs(world, range(1, 4))
    user_of(evidence, world.slurm.jobs[0])
    later = start_jobs(world, range(10, 14))
    assert [user_of(evidence, job) for job in later * 3] == [job.user for job in later] * 3
    assert squeues(world) == 1


def test_names_that_no_job_has_are_asked_for_once(world: World, evidence: Evidence) -> None:
    for _ in range(3):
        assert evidence.job("f" * 32, JobTab.RUNNING) is None
    assert squeues(world) == 1


def test_names_in_a_query_are_bounded(
    world: World, evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.services.session.evidence.NAMES_AT_ONCE", 10)
    jobs = start_jobs(world, range(1, 31))
    assert [user_of(evidence, job) for job in reversed(jobs)] == [j.user for j in reversed(jobs)]
    assert squeues(world) == 3


def test_answers_of_others_queries_expire_as_well(world: World, evidence: Evidence) -> None:
    """The job of a shared answer has ended, and another user's has its name."""
    first, second = start_jobs(world, range(1, 3))
    user_of(evidence, first)
    world.slurm.finish(second, "COMPLETED")
    world.slurm.jobs.append(FakeJob(9, "mallory", second.name, "", "", state="RUNNING", node="n1"))
    world.clock.advance(seconds=EVIDENCE_LIFETIME.total_seconds() - 1)
    assert user_of(evidence, second) == second.user
    world.clock.advance(seconds=1)
    assert user_of(evidence, second) == "mallory"
    assert squeues(world) == 2


def test_the_first_of_the_jobs_of_a_name_counts_in_a_shared_answer(
    world: World, evidence: Evidence
) -> None:
    first, second = start_jobs(world, range(1, 3))
    world.slurm.jobs.insert(0, FakeJob(9, "mallory", second.name, "", "", state="RUNNING"))
    user_of(evidence, first)
    assert user_of(evidence, second) == second.user


def test_a_home_is_read_once_however_often_slurm_is_asked(world: World, evidence: Evidence) -> None:
    name = f"{7:032x}"
    write_proof(world, "alice", name, "token")
    world.slurm.commands.clear()
    first = evidence.proof("alice", name)
    write_proof(world, "alice", name, "next")
    assert evidence.proof("alice", name) == first
    assert evidence.proof("bob", name) == ""
    assert len(world.slurm.commands) == 2
    world.clock.advance(seconds=EVIDENCE_LIFETIME.total_seconds())
    assert evidence.proof("alice", name) != first


class SilentSlurm:
    """A Slurm that does not answer, when it is told so."""

    def __init__(self) -> None:
        self.queries = 0
        self.fail = threading.Event()

    def named(self, _sessions: Collection[str]) -> dict[str, list[JobReport]]:
        self.queries += 1
        self.fail.wait(30)
        raise Unavailable("Slurm does not answer.")


def test_those_who_wait_for_a_query_that_fails_do_not_repeat_it(world: World) -> None:
    slurm: Any = SilentSlurm()
    moments, calls = count(), threading.Semaphore(0)

    def clock() -> datetime:
        calls.release()
        return datetime(2026, 11, 29, tzinfo=UTC) + timedelta(milliseconds=next(moments))

    evidence = Evidence(
        jobs=world.systems.stores.jobs, scheduler=slurm, files=world.systems.files, clock=clock
    )
    with ThreadPoolExecutor(4) as pool:
        waiting = [
            pool.submit(evidence.job, f"{number:032x}", JobTab.RUNNING) for number in range(4)
        ]
        for _ in waiting:  # each has called
            assert calls.acquire(timeout=30)
        slurm.fail.set()
        for future in waiting:
            with pytest.raises(Unavailable):
                future.result(30)
    assert slurm.queries == 1
    with pytest.raises(Unavailable):
        evidence.job("f" * 32, JobTab.RUNNING)
    assert slurm.queries == 2


class SlowSlurm:
    """A Slurm whose answers take seconds, by its clock."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 29, tzinfo=UTC)
        self.queries: list[set[str]] = []
        self.asked, self.answer = threading.Event(), threading.Event()
        self.calls = threading.Semaphore(0)

    def clock(self) -> datetime:
        self.calls.release()
        return self.now

    def named(self, sessions: Collection[str]) -> dict[str, list[JobReport]]:
        self.queries.append(set(sessions))
        self.asked.set()
        self.answer.wait(30)
        self.now += 2 * EVIDENCE_LIFETIME
        return {}


def test_those_who_wait_for_a_slow_query_use_its_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two queries take longer than EVIDENCE_LIFETIME, and all callers have been there before."""
    monkeypatch.setattr("portal.services.session.evidence.NAMES_AT_ONCE", 16)
    jobs = start_jobs(world, range(1, 31))
    slurm: Any = SlowSlurm()
    evidence = Evidence(
        jobs=world.systems.stores.jobs,
        scheduler=slurm,
        files=world.systems.files,
        clock=slurm.clock,
    )
    with ThreadPoolExecutor(len(jobs)) as pool:
        first = pool.submit(user_of, evidence, jobs[0])
        assert slurm.asked.wait(30)
        waiting = [pool.submit(user_of, evidence, job) for job in jobs[1:]]
        for _ in jobs:
            assert slurm.calls.acquire(timeout=30)
        slurm.answer.set()
        for future in (first, *waiting):
            assert future.result(30) is None
    assert len(slurm.queries) == 2
    assert user_of(evidence, jobs[0]) is None
    assert len(slurm.queries) == 3
