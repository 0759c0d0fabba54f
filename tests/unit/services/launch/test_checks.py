"""Launch requests against limits on submitted jobs: all of a user's jobs in the queue count."""

from __future__ import annotations

import pytest

from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Association, Limits, PartitionAccess, Qos
from portal.core.launch.request import LaunchRequest, parse_launch
from portal.errors import InvalidRequest, TooMany
from portal.services.launch.launcher import MOST_SUBMITTING
from tests.support.fakes import World
from tests.support.launches import Later
from tests.support.sessions import ALICE, BOB
from tests.support.stored_jobs import array, job, store_jobs

BODY = {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}


def launch_request(count: int = 1) -> LaunchRequest:
    return parse_launch(BODY | {"count": count})


@pytest.fixture
def limited(world: World) -> World:
    """A cluster that accepts four jobs of alice's and nine of everybody's in her account."""
    associations = (
        Association("research", "alice", qos=("normal",), default_qos="normal", submitted=4),
        Association("research", "bob", qos=("normal",), default_qos="normal"),
        Association("research", parent="root", group_submitted=9),
    )
    world.status.save_partitions([Partition("main", True, True, 8, 8192, 600)])
    world.status.save_limits(
        Limits(
            enforced=("associations", "limits", "qos"),
            default_accounts={"alice": "research", "bob": "research"},
            associations=associations,
            qos=(Qos("normal"),),
            partitions=(PartitionAccess("main"),),
        )
    )
    return world


def refused(world: World, count: int = 1) -> list[str]:
    """What a launch says that is refused before Slurm is asked; [] for one that is not."""
    try:
        world.services.launch_checks.plan(ALICE, launch_request(count))
    except InvalidRequest as error:
        return [f"{wrong.field}: {wrong.message}" for wrong in error.errors]
    return []


def test_jobs_that_nobody_launched_here_count_with_those_in_arrays(limited: World) -> None:
    now = limited.clock()
    store_jobs(limited, job(1, now), *array(10, now, running=1, waiting="1-1"))
    assert refused(limited, 1) == []
    (text,) = refused(limited, 2)
    assert text == (
        "count: Slurm accepts 4 at most, and 3 of yours wait or run already "
        "(account research, MaxSubmitJobs)"
    )


def test_others_jobs_count_for_the_account_without_being_told(limited: World) -> None:
    now = limited.clock()
    store_jobs(limited, *[job(number, now, "bob") for number in range(1, 9)])
    assert refused(limited, 1) == []
    (text,) = refused(limited, 2)
    assert "GrpSubmitJobs" in text and "8" not in text and "bob" not in text


def test_nothing_is_stored_or_submitted_and_the_estimate_says_the_same(limited: World) -> None:
    now = limited.clock()
    store_jobs(limited, *[job(number, now) for number in range(1, 5)])
    for attempt in (limited.launch_all, limited.estimate):
        with pytest.raises(InvalidRequest) as caught:
            attempt(ALICE, launch_request())
        assert [wrong.field for wrong in caught.value.errors] == ["count"]
    assert limited.store.live() == [] and limited.slurm.jobs == []
    assert limited.launch_all(BOB, launch_request())


def test_a_repeated_launch_is_answered_although_its_own_jobs_fill_the_limit(limited: World) -> None:
    launcher, checks = limited.services.launcher, limited.services.launch_checks
    first = limited.launch_all(ALICE, launch_request(4), key="k")
    store_jobs(limited, *[job(number, limited.clock()) for number in range(1, 5)])
    again = launcher.launch(checks.prepare(ALICE, BODY | {"count": 4}, "k"))
    assert [session.id for session in again] == [session.id for session in first]
    for key in ("other", None):
        with pytest.raises(InvalidRequest):
            checks.prepare(ALICE, BODY, key)


def test_sessions_that_wait_for_their_submission_count(limited: World, later: Later) -> None:
    store_jobs(limited, job(1, limited.clock()))
    limited.launch_all(ALICE, launch_request(2))
    assert refused(limited, 1) == []
    (text,) = refused(limited, 2)
    assert "Slurm accepts 4 at most, and 3 of yours wait or run already" in text
    with_account = parse_launch(BODY | {"count": 3, "account": "research"})
    limited.services.launch_checks.plan(ALICE, with_account)  # may count elsewhere
    later.run()
    assert refused(limited, 3) == []  # they are in the queue from its next poll on


def test_one_person_does_not_store_any_number(world: World, later: Later) -> None:
    for number in range(MOST_SUBMITTING // 20):
        world.launch_all(ALICE, launch_request(20), key=None if number else "k")
    stored = len(world.store.live())
    with pytest.raises(TooMany):
        world.launch_all(ALICE, launch_request())
    assert len(world.store.live()) == stored == MOST_SUBMITTING
    assert world.launch_all(ALICE, launch_request(20), key="k")
    assert world.launch_all(BOB, launch_request())
    later.run()
    assert world.launch_all(ALICE, launch_request())
