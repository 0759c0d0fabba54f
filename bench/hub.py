"""JupyterHub with Slipway's spawner against JupyterHub with batchspawner, in turns.

    python -m bench.hub [--rounds 12] [--seconds 5] [--watch 120] [--what starts requests calls]

runs on the cluster of `make hub`, or on the one that SLIPWAY_PROJECT and PORT name, and starts a
second JupyterHub beside it (bench/hub.sh): the same JupyterHub and proxy, the same session image,
the same resources, on the same nodes. Both hubs are warm. batchspawner has two columns: as its
README and its defaults have it, and "tuned", with all that its settings allow: four questions a
second, no srun, no login environment, and our options of Jupyter.

- starts    from POST /hub/api/users/NAME/server to a response of GET /user/NAME/api/status through
            the hub's proxy. Both wait for Slurm's scheduler, whose tick adds up to a second at
            random, so that part is also shown separately, as are those after it. batchspawner's
            defaults also have the node gather the login environment in that part.
- requests  a file of 1 KB from the browser's side of the hub's proxy, all the way: with one
            connection, and with 32. The server itself is the larger part of it.
- calls     Slurm's RPCs a minute (sdiag), by the users who made them: without servers and with two.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.hub_load import calls, requests
from bench.hub_stages import Round, look
from bench.hubs import OURS, Hub, Peer, our_arguments, our_url
from tests.support.client import Api, login
from tests.support.cluster import Cluster

USER = "alice"
OTHER = "bob"


@dataclass(frozen=True)
class Contender:
    """One column of the table."""

    hub: Hub
    folders: Callable[[], str]
    """What the batch script of the server that runs now creates first."""


def contenders(cluster: Cluster, peer_url: str) -> dict[str, Contender]:
    """All columns; the first is what the others are compared with."""
    password = cluster.password(USER)
    tuned = {"tuned": True, "arguments": our_arguments()}
    peers = {
        "batchspawner": Hub("batchspawner", peer_url, USER, {}),
        "tuned": Hub("batchspawner, tuned", peer_url, USER, tuned),
    }
    ours = Hub("ours", our_url(cluster), USER, OURS)
    api = Api(cluster, USER, login(cluster, USER))

    def session_folder() -> str:
        session = api.list(hub=ours.path(), state="running")[0]["id"]
        return f".slipway/sessions/{session}/home"

    contenders = {
        name: Contender(hub.login(password), lambda: ".peer/*") for name, hub in peers.items()
    }
    return contenders | {"ours": Contender(ours.login(password), session_folder)}


def measure(cluster: Cluster, contender: Contender) -> Round:
    """Start a server once, from a random moment of Slurm's tick."""
    cluster.shell("login", "rm -rf .peer jupyterhub_slurmspawner_*.log", user=USER)
    time.sleep(1 + random.random())  # not security relevant
    requested = time.time()
    try:
        contender.hub.start()
        answered = time.time()
        return look(cluster, contender.hub, contender.folders(), requested, answered)
    finally:
        contender.hub.stop()


def starts(cluster: Cluster, all_of: Mapping[str, Contender], rounds: int) -> str:
    """Measure starts in turns, each round from another one; the first warms up."""
    results: dict[str, list[Round]] = {name: [] for name in all_of}
    names = list(all_of)
    for number in range(-1, rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            result = measure(cluster, all_of[name])
            if number >= 0:
                results[name].append(result)
    return report(results)


def report(results: Mapping[str, list[Round]]) -> str:
    """Medians in seconds, and ours as a ratio to each of batchspawner's."""
    head = "".join(f"{name:>13}" for name in results)
    lines = [f"{len(results['ours'])} rounds; medians, s{'':17}{head}   ratios"]
    for title, part in (
        ("asking to answer", lambda r: r.total),
        ("  until the script runs (chance)", lambda r: r.queued),
        ("  without that", lambda r: r.beyond_queue),
        ("    container", lambda r: r.container),
        ("    import of the server", lambda r: r.importing),
        ("    until the hub has noticed", lambda r: r.noticing),
    ):
        medians = {name: statistics.median(map(part, stages)) for name, stages in results.items()}
        ratios = [f"{medians['ours'] / medians[name]:.2f}" for name in results if name != "ours"]
        columns = "".join(f"{median:13.2f}" for median in medians.values())
        lines.append(f"{title:37}{columns}   {' '.join(ratios)}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=5, help="for each measurement of requests")
    parser.add_argument("--watch", type=int, default=120, help="seconds in which RPCs are counted")
    parser.add_argument("--what", nargs="*", default=["starts", "requests", "calls"])
    options = parser.parse_args()
    cluster = Cluster.from_environment()
    peer = Peer(cluster)
    with peer.started() as url:
        all_of = contenders(cluster, url)
        if "starts" in options.what:
            print(starts(cluster, all_of, options.rounds), flush=True)
        hubs = [all_of["batchspawner"].hub, all_of["ours"].hub]
        if "requests" in options.what:
            print(requests(peer, hubs, options.seconds), flush=True)
        if "calls" in options.what:
            others = Hub("ours", hubs[1].url, OTHER, OURS).login(cluster.password(OTHER))
            print(calls(cluster, hubs[0], others, options.watch), flush=True)


if __name__ == "__main__":
    main()
