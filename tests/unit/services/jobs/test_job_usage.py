"""What jobs use: Slurm is asked only while somebody looks, once for all who do."""

from __future__ import annotations

import pytest

from portal.core.auth.person import Person
from portal.core.jobs.job_usage import JobUsage
from portal.errors import NotFound
from tests.support.fakes import World
from tests.support.measured_jobs import end, live_step, record, run, submit

ALICE, BOB = Person("alice", False, "l1"), Person("bob", False, "l2")
ADMIN = Person("admin", True, "l3")


def asked(world: World) -> list[str]:
    """Who asked Slurm with which command."""
    return [
        " ".join(line.split()[:2]) for line in world.slurm.commands
        if "sstat" in line or "TotalCPU" in line
    ]  # fmt: skip


def look(world: World, person: Person = ALICE) -> JobUsage:
    """Look at job 7."""
    usage = world.services.job_use.refresh(person, "7")
    assert usage is not None
    return usage


def test_a_running_job_is_measured_as_its_owner_every_ten_seconds(world: World) -> None:
    job = run(world)
    world.slurm.steps[7] = [live_step(7, 60)]
    for second in range(25):
        look(world, (ALICE, ADMIN)[second % 2])
        world.clock.advance(seconds=1)
    assert asked(world) == ["alice: sstat"] * 3
    assert world.services.job_use.stored(job) == look(world)


def test_a_job_that_is_over_is_asked_for_until_accounting_has_its_end(world: World) -> None:
    end(world)
    assert "couldn't get steps" in look(world).problem
    look(world)
    assert asked(world) == ["slipway: sacct"]
    world.clock.advance(seconds=30)
    world.slurm.steps[7] = record(7, 60)
    assert look(world).final
    world.clock.advance(days=30)
    assert look(world).final
    assert asked(world) == ["slipway: sacct"] * 2


def test_a_requeued_job_begins_anew(world: World) -> None:
    job = run(world)
    world.slurm.steps[7] = [live_step(7, 60)]
    look(world)
    again = run(world)
    assert again.report.start != job.report.start
    assert world.services.job_use.stored(again) is None
    world.slurm.steps[7] = [live_step(7, 6)]
    assert (look(world).cpu_seconds, look(world).cores_now) == (6.0, None)


def test_an_answer_that_fails_keeps_the_last_figures(world: World) -> None:
    run(world)
    world.slurm.steps[7] = [live_step(7, 60)]
    look(world)
    world.clock.advance(seconds=10)
    world.slurm.down = True
    usage = look(world)
    assert (usage.cpu_seconds, "Unable to contact" in usage.problem) == (60.0, True)
    world.clock.advance(seconds=10)
    world.slurm.down = False
    assert look(world).problem == ""


def test_nobody_is_asked_about_a_job_that_waits_or_that_is_not_ones_own(world: World) -> None:
    submit(world)
    assert world.services.job_use.refresh(ALICE, "7") is None
    with pytest.raises(NotFound):
        world.services.job_use.refresh(BOB, "7")
    assert asked(world) == []


def test_what_nobody_looks_at_is_forgotten_after_months(world: World) -> None:
    job = run(world)
    world.slurm.steps[7] = [live_step(7, 60)]
    look(world)
    world.clock.advance(days=89)
    world.services.job_use.forget()
    assert world.services.job_use.stored(job) is not None
    world.clock.advance(days=2)
    world.services.job_use.forget()
    assert world.services.job_use.stored(job) is None
