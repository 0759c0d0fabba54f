"""The campaign of bench/centre in a small form: 5,000 queued jobs, twenty launches, thirty tabs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from bench.centre.clients import Clients
from bench.centre.parts import PAGES
from bench.centre.site import QUEUE
from tests.slurm.conftest import MakeApi
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

PEOPLE = ("alice", "bob")
LAUNCHES = 20
TABS = 30
ARRAYS, TASKS = 5, 1000
SECONDS = 20.0


@pytest.fixture(scope="module")
def queue(cluster: Cluster) -> Iterator[None]:
    """Jobs of bob's that wait, each with a record of its own."""
    words = ("sh", str(TASKS - 1), " ".join(["bob"] * ARRAYS), "main", "research")
    try:
        cluster.run("login", "bash", "-c", QUEUE, *words, seconds=120)
        mine = ("--user=bob", "--name=queued", "--states=PENDING")
        listed = cluster.run("login", "squeue", "--noheader", *mine, "--format=%i")
        assert len(listed.split()) == ARRAYS * TASKS
        yield
    finally:
        cluster.run("login", "scancel", "--name=queued", user="bob", seconds=120, check=False)


@pytest.fixture(scope="module")
def clients(cluster: Cluster, queue: None) -> Clients:
    """Both people, logged in."""
    cluster.forget_attempts()
    logged_in = Clients(cluster, cluster.password)
    assert logged_in.log_in(PEOPLE, 1)["problems"] == []
    return logged_in


@pytest.fixture
def apis(make_api: MakeApi) -> Iterator[dict[str, Api]]:
    """API clients of both people; what these have launched ends with the test."""
    clients = {name: make_api(name) for name in PEOPLE}
    yield clients
    for api in clients.values():
        api.clean()


def test_launches_at_once_behind_a_long_queue(
    cluster: Cluster, clients: Clients, apis: dict[str, Api]
) -> None:
    people = [PEOPLE[number % len(PEOPLE)] for number in range(LAUNCHES)]
    results = clients.act("launch", people, seconds=1)
    for launch in results["launches"]:
        apis[launch["person"]].launched += launch["ids"]
    problems = [launch["problem"] for launch in results["launches"]]
    assert set(problems) == {""}, problems
    assert "launch" not in results["refused"], results
    accepted = Counter(identifier for api in apis.values() for identifier in api.launched)
    assert accepted.total() == len(accepted) == LAUNCHES

    def in_slurm() -> Counter[str] | None:
        names = cluster.run("login", "squeue", "--noheader", "--all", "--format=%j").split()
        jobs = Counter(name for name in names if name in accepted)
        return jobs if set(jobs) == set(accepted) else None

    assert wait_for("all of them in Slurm's queue", in_slurm, 60) == accepted


def test_open_tabs_are_answered_behind_a_long_queue(clients: Clients, apis: dict[str, Api]) -> None:
    sessions = {name: api.launch()["id"] for name, api in apis.items()}
    pages = [(page, path) for page, path in PAGES for _ in range(TABS // len(PAGES) + 1)][:TABS]
    opened = [
        {
            "person": name,
            "page": page.format(session=sessions[name]),
            "path": path.format(session=sessions[name]),
        }
        for number, (page, path) in enumerate(pages)
        for name in [PEOPLE[number % len(PEOPLE)]]
    ]
    results = clients.act(
        "tabs", PEOPLE, tabs=opened, runners=[], every=10, seconds=SECONDS, ramp=SECONDS / 4
    )
    answers = results["answers"]
    assert set(answers) <= {"200", "204"}, answers
    assert answers["204"] > TABS, "the pages were not kept fresh"
