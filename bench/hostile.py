"""How attacks slow another user down: list, launch and kernel, quiet and under attack.

    python -m bench.hostile [--rounds 20] [--without-forms]

runs on the cluster of `make up`, or on the one that SLIPWAY_PROJECT and PORT name. Alice loads her
list, launches (and ends) a session and computes in a kernel, repeatedly; first quietly, then during
all of these at once:

- 24 anonymous connections that send a login form a byte at a time,
- 24 parallel requests of bob's, whose ~/.bashrc prints a byte now and then and never ends,
- a runner of bob's that was sent SIGSTOP and whose apps are opened by 8 parallel requests.

The two alternate, so that a busy machine slows both. Printed are medians and 95th percentiles in
seconds, and the ratios of the latter; the target is 1.5 at most.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.support.apps import Kernel
from tests.support.client import OVER, Api, Json, login
from tests.support.cluster import Cluster
from tests.support.hostile_shells import DRIP, Storm, hostile_shell, sender, stopped_runner

CONNECTIONS = 24
SLOW_FORM = (
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
)
TURNS = 4
PAUSE = 0.5
"""Seconds between a response and the next request: what counts is which requests occupy threads,
not how many requests per second a machine can refuse.
"""
SMALLEST: Json = {"resources": {"cpus": 1, "memory": "300m"}}


@dataclass
class Alice:
    """A user at work."""

    api: Api
    kernel: Kernel
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def work(self, rounds: int) -> dict[str, list[float]]:
        """Repeat all actions; seconds for each kind."""
        found: dict[str, list[float]] = {"list": [], "launch": [], "kernel": []}
        for _ in range(rounds):
            found["list"].append(duration(self.api.list))
            found["launch"].append(duration(lambda: self.api.launch(**SMALLEST)))
            self.api.stop(self.api.launched[-1])
            found["kernel"].append(duration(lambda: self.kernel.value("print(1 + 1)")))
        for session in self.api.launched[1:]:
            self.api.wait_state(session, *OVER, seconds=120)
        del self.api.launched[1:]
        return found


def duration(action: Callable[[], object]) -> float:
    """Duration of a call in seconds."""
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


@contextmanager
def slow_forms(cluster: Cluster) -> Iterator[None]:
    """Anonymous clients that log in a byte at a time; those cut off reconnect."""
    parts, stop = urlsplit(cluster.url), threading.Event()
    place = parts.hostname or "localhost", parts.port or 80

    def attack() -> None:
        while not stop.is_set():
            try:
                with socket.create_connection(place, 10) as stream:
                    stream.sendall(SLOW_FORM)
                    while not stop.wait(2):
                        stream.sendall(b"x")
            except OSError:
                stop.wait(0.2)

    threads = [threading.Thread(target=attack, daemon=True) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)


@contextmanager
def under_fire(cluster: Cluster, bob: Api, his: Json, forms: bool) -> Iterator[list[Storm]]:
    """All attacks at once; optionally without the slow forms, which HAProxy handles."""
    opening = sender(bob, "POST", f"/sessions/{his['id']}/apps/terminal")
    storms = [
        Storm(sender(bob, "GET", "/folders"), pause=PAUSE),
        Storm(opening, many=8, pause=PAUSE),
    ]
    with ExitStack() as stack:
        stack.enter_context(stopped_runner(cluster, his))
        stack.enter_context(hostile_shell(cluster, "bob", DRIP))
        if forms:
            stack.enter_context(slow_forms(cluster))
        for storm in storms:
            stack.enter_context(storm)
        time.sleep(3)
        yield storms


def high(values: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def report(quiet: dict[str, list[float]], fire: dict[str, list[float]]) -> str:
    """The figures as text."""
    lines = ["seconds    quiet: median    p95   under fire: median    p95   ratio of p95"]
    for name, before in quiet.items():
        after = fire[name]
        ratio = high(after) / high(before)
        lines.append(
            f"{name:10} {statistics.median(before):14.3f} {high(before):6.3f}"
            f" {statistics.median(after):20.3f} {high(after):6.3f} {ratio:14.2f}"
        )
    return "\n".join(lines)


def add(total: dict[str, list[float]], more: dict[str, list[float]]) -> None:
    """Add the figures of one turn to those of the others."""
    for name, values in more.items():
        total.setdefault(name, []).extend(values)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--without-forms", action="store_true", help="leave the slow login forms out"
    )
    options = parser.parse_args()
    rounds = max(options.rounds // TURNS, 1)
    cluster = Cluster.from_environment()
    people = {user: Api(cluster, user, login(cluster, user)) for user in ("alice", "bob")}
    quiet: dict[str, list[float]] = {}
    fire: dict[str, list[float]] = {}
    try:
        notebook = people["alice"].running()
        alice = Alice(people["alice"], Kernel(people["alice"].open(notebook["id"], "jupyterlab")))
        his = people["bob"].running(**SMALLEST)
        alice.work(2)  # warms up caches and connections
        for _ in range(TURNS):
            add(quiet, alice.work(rounds))
            with under_fire(cluster, people["bob"], his, not options.without_forms) as storms:
                add(fire, alice.work(rounds))
            print("answers to bob:", *(dict(storm.statuses) for storm in storms), flush=True)
    finally:
        for api in people.values():
            api.clean()
    print(report(quiet, fire))


if __name__ == "__main__":
    main()
