"""What may be chosen at a launch: a person with 40 accounts on a large site, against one with 1.

    python -m bench.choice [--accounts 40] [--associations 10000] [--rounds 15]

runs anywhere, over the test suite's fakes of Slurm and HAProxy, with the real web application and a
database in a temporary folder. Both persons are on the same site, and a third row has a site with
nobody else. Printed: the medians of pages and API requests, and their ratios.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from flask import Flask

from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import (
    Association,
    Limits,
    Minutes,
    PartitionAccess,
    Qos,
    Reservation,
)
from portal.web.app import create_app
from tests.support.fakes import PASSWORDS, make_world
from tests.unit.web.conftest import PORTAL, Api, Browser, make_settings

PARTITIONS, QOS, RESERVATIONS = 12, 30, 10
MANY, FEW = "alice", "bob"
ADDRESSES = {
    "launch-options": "/launch-options",
    "launch-options, all chosen": "/launch-options?account={account}&qos=q01&resource_group=p01",
    "accounts": "/accounts",
    "resource-groups": "/resource-groups?account={account}",
}
PAGES = {"wizard": "/sessions/new", "composer": "/jobs/new"}


def associations(accounts: int, total: int) -> Iterator[Association]:
    """Accounts below ten others, alice in some of them, bob in one, and others in the rest."""
    names = [f"a{number:04d}" for number in range(max(accounts, total // 12))]
    qos = tuple(f"q{number:02d}" for number in range(QOS // 3))
    yield Association("root")
    for number in range(10):
        yield Association(f"top{number}", parent="root", total=Minutes(cpus=10**9))
    for number, name in enumerate(names):
        used = Minutes(cpus=number)
        yield Association(
            name, parent=f"top{number % 10}", total=Minutes(cpus=10**6), used=used, description=name
        )
    for name in names[:accounts]:
        yield Association(name, MANY, qos=qos, default_qos=qos[0], submitted=1000)
    yield Association(names[0], FEW, qos=qos, default_qos=qos[0], submitted=1000)
    for number in range(max(0, total - len(names) - accounts - 12)):
        user = f"user{number // 3:05d}"
        yield Association(names[number % len(names)], user, qos=qos, default_qos=qos[0])


def site(accounts: int, total: int) -> Limits:
    """A large site, with everything enforced."""
    names = [f"q{number:02d}" for number in range(QOS)]
    parts = [f"p{number:02d}" for number in range(PARTITIONS)]
    return Limits(
        enforced=("associations", "limits", "qos"),
        default_accounts={MANY: "a0000", FEW: "a0000"},
        associations=tuple(associations(accounts, total)),
        qos=tuple(Qos(name, minutes=600) for name in names),
        partitions=tuple(PartitionAccess(name) for name in parts),
        reservations=tuple(
            Reservation(f"r{number}", accounts=("a0000",)) for number in range(RESERVATIONS)
        ),
    )


def median(action: Callable[[], object], rounds: int) -> float:
    """The median of its durations in milliseconds, once everything was read."""
    action()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def asking(app: Flask, person: str, page: bool, path: str) -> Callable[[], None]:
    """What sends a person's request."""
    if page:
        browser = Browser(app).log_in(person)
        send = partial(browser.get, path)
    else:
        client = app.test_client()
        body = {"username": person, "password": PASSWORDS[person]}
        answer = client.post("/api/v1/tokens", json=body, base_url=PORTAL)
        send = partial(Api(client, answer.json["token"] if answer.json else ""), "GET", path)

    def ask() -> None:
        answer = send()
        assert answer.status_code == 200, answer.text

    return ask


def measure(limits: Limits, people: list[str], rounds: int) -> dict[tuple[str, str], float]:
    """The medians for each person on a site, by what is asked and the person."""
    with tempfile.TemporaryDirectory() as folder:
        world = make_world(make_settings(Path(folder)))
        world.worker.read_partitions()
        world.status.save_partitions(
            [
                Partition(limit.name, limit.name == "p00", True, 64, 10**6, 600)
                for limit in limits.partitions
            ]
        )
        world.status.save_limits(limits)
        app = create_app(world.services)
        medians = {}
        for person, (name, address) in itertools.product(people, {**ADDRESSES, **PAGES}.items()):
            ask = asking(app, person, name in PAGES, address.format(account="a0000"))
            medians[name, person] = median(ask, rounds)
        return medians


def main() -> None:
    """Print the durations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accounts", type=int, default=40)
    parser.add_argument("--associations", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    large = measure(site(options.accounts, options.associations), [MANY, FEW], options.rounds)
    small = measure(site(1, 1), [FEW], options.rounds)
    print(
        f"{'milliseconds':28}{'alone, 1':>10}{'1 account':>11}{options.accounts:>6} accounts  ratio"
    )
    for name in {**ADDRESSES, **PAGES}:
        alone, few, many = small[name, FEW], large[name, FEW], large[name, MANY]
        print(f"{name:28}{alone:10.1f}{few:11.1f}{many:15.1f}{many / few:7.1f}")


if __name__ == "__main__":
    main()
