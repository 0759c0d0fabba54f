"""Slurm's estimate before a launch: rarely queried, never stored, never blocking."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from portal.adapters.slurm.commands import UnexpectedOutput
from portal.adapters.slurm.estimate import estimate_parse
from portal.adapters.ssh.transport import Completed
from portal.core.launch.request import LaunchRequest, parse_launch
from portal.errors import InvalidRequest, OutcomeUnknown
from tests.support.fakes import World
from tests.support.paths import RECORDED
from tests.support.sessions import ALICE, BOB
from tests.support.slurm import GUESS

START = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)


def launch_request(cpus: int = 1, **more: object) -> LaunchRequest:
    resources = {"cpus": cpus, "memory": "600m"}
    return parse_launch({"environment": "python", "resources": resources, **more})


def tries(world: World) -> int:
    return sum("--test-only" in line for line in world.slurm.commands)


def test_slurms_estimate(world: World) -> None:
    found = world.estimate(ALICE, launch_request())
    assert found is not None
    assert (found.start, found.node, found.reason) == (START, "n1", "")
    assert world.slurm.commands[-1].startswith("alice: ")
    assert world.slurm.jobs == []
    assert world.slurm.folders == set()
    assert world.store.live() == []


def test_the_script_is_the_real_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []

    def estimate(user: str, script: str) -> None:
        sent.append(script)

    monkeypatch.setattr(world.scheduler, "estimate", estimate)
    world.estimate(ALICE, launch_request())
    launched = world.launch(ALICE, launch_request())
    assert sent[0].splitlines()[0] == world.slurm.jobs[0].script.splitlines()[0]
    assert launched.id not in sent[0]


def test_of_several_sessions_the_first_counts(world: World) -> None:
    found = world.estimate(ALICE, launch_request(count=3))
    assert found is not None
    assert found.start == START


def test_slurm_is_queried_every_five_seconds_at_most(world: World) -> None:
    first = world.estimate(ALICE, launch_request())
    assert world.estimate(ALICE, launch_request()) == first
    other = world.estimate(ALICE, launch_request(2))
    assert other is not None
    assert (other.start, "a few seconds" in other.reason) == (None, True)
    assert tries(world) == 1
    assert world.estimate(BOB, launch_request()) == first
    assert tries(world) == 2
    world.clock.advance(seconds=5)
    found = world.estimate(ALICE, launch_request(2))
    assert found is not None
    assert found.start == START
    assert tries(world) == 3


def test_any_failure_means_no_estimate(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.slurm.down = True
    assert world.estimate(ALICE, launch_request()) is None
    world.slurm.down = False
    for output in ("sbatch: we shall see\n", ""):
        world.clock.advance(seconds=6)
        world.slurm.guess = Completed(0, b"", output)
        assert world.estimate(ALICE, launch_request()) is None
    for code in (124, 137):
        world.clock.advance(seconds=6)
        world.slurm.guess = Completed(code, b"", "")
        assert world.estimate(ALICE, launch_request()) is None

    def cut(*_words: object, **_more: object) -> Completed:
        raise OutcomeUnknown("the connection was cut")

    monkeypatch.setattr(world.slurm, "run", cut)
    world.clock.advance(seconds=6)
    assert world.estimate(ALICE, launch_request()) is None


def test_requests_refused_by_a_launch_are_refused(world: World) -> None:
    with pytest.raises(InvalidRequest):
        world.estimate(ALICE, launch_request(version="9.9"))
    assert tries(world) == 0


def test_slurms_refusal_is_a_reason(world: World) -> None:
    for name in ("refused", "partition"):
        words = (RECORDED / "24.11" / f"estimate-{name}.stderr.txt").read_text(encoding="utf-8")
        world.slurm.guess = Completed(1, b"", words)
        found = world.estimate(ALICE, launch_request())
        assert found is not None
        assert found.start is None
        assert found.reason.startswith("Slurm would reject it: ")
        assert "allocation failure" not in found.reason
        world.clock.advance(seconds=6)


def test_limits_ignored_by_slurm_are_checked(world: World) -> None:
    world.worker.read_partitions()
    world.worker.read_limits()
    for _ in range(3):
        world.launch(ALICE, launch_request())
        world.slurm.start(world.slurm.jobs[-1])
    world.worker.poll()
    found = world.estimate(ALICE, launch_request())
    assert found is not None
    assert found.start is None
    assert "you may use 3 cores at once (QOS normal, MaxTRESPerUser)" in found.reason
    assert tries(world) == 0
    assert world.estimate(BOB, launch_request(3)) is not None
    assert tries(world) == 1
    world.slurm.finish(world.slurm.jobs[0], "COMPLETED")
    world.worker.poll()
    found = world.estimate(ALICE, launch_request())
    assert found is not None
    assert found.start == START


@pytest.mark.parametrize("version", ["24.11", "26.05"])
def test_recorded_output(version: str) -> None:
    text = (RECORDED / version / "estimate-start.txt").read_text(encoding="utf-8")
    found = estimate_parse(text)
    assert found.start is not None
    assert found.node in ("n1", "n2")
    assert estimate_parse("sbatch: Welcome\n" + GUESS).node == "n1"


def test_a_start_beyond_a_year_is_none() -> None:
    """Slurm adds up the limits of the jobs before it, and one of them has none."""
    for far in ("66207628800", "4068-01-10T10:00:00"):
        found = estimate_parse(GUESS.replace("1795186800", far))
        assert (found.start, found.reason) == (None, "Slurm expects no start within a year.")


def test_times_as_slurm_writes_them_by_default() -> None:
    words = GUESS.replace("1795186800", "2026-11-20T15:00:00").replace("nodes n1", "n[1-2]")
    found = estimate_parse(words)
    assert found.start == START
    assert found.node == "n[1-2]"
    with pytest.raises(UnexpectedOutput):
        estimate_parse(GUESS.replace("1795186800", "Unknown"))


@pytest.mark.parametrize(
    "words",
    [
        "1795186800 using 1 processors on nodes n1 in partition main",
        "1795186800.000000 using 1 processors on nodes n1 in partition main",
        "2026-11-20T15:00:00 using 4 CPUs on n1",
        "2026-11-20T15:00:00+00:00 using 1 processors on node n1",
        "1795186800 on nodes n1 in partition main",
    ],
)
def test_every_form_of_a_start_time(words: str) -> None:
    """26.05 and future versions: seconds or a date, with or without further text."""
    found = estimate_parse(f"sbatch: error: x\nsbatch: Job 7 to start at {words}\n")
    assert found.start == START
    assert found.node == "n1"
