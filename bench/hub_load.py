"""What running servers cost: requests through the hub's proxy, and RPCs of Slurm's."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.hubs import Hub, Peer
from tests.support.cluster import Cluster

ROUNDS = 5
CONNECTIONS = (1, 32)
SERVERS = ("one", "two")
UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}
PORTAL = ("slipway", "slipway-operator")
"""The portal's own accounts on the cluster."""


@dataclass(frozen=True)
class Rate:
    """One measurement."""

    per_second: float
    p50: float
    """Milliseconds."""


def requests(peer: Peer, hubs: Sequence[Hub], seconds: int) -> str:
    """Fetch a file of 1 KB from a server of each hub's, in turns; one wrk for all of them."""
    paths = {}
    for hub in hubs:
        hub.start()
        paths[hub.name] = hub.write_file()
    try:
        lines = [f"{'1 KB through the hub':26}" + "".join(f"{hub.name:>14}" for hub in hubs)]
        for connections in CONNECTIONS:
            rates: dict[str, list[Rate]] = {hub.name: [] for hub in hubs}
            for _ in range(ROUNDS + 1):  # the first warms up
                for hub in hubs:
                    rates[hub.name].append(_wrk(peer, hub, paths[hub.name], connections, seconds))
            lines += _table(connections, {name: rounds[1:] for name, rounds in rates.items()})
        return "\n".join(lines)
    finally:
        for hub in hubs:
            hub.stop()


def _wrk(peer: Peer, hub: Hub, path: str, connections: int, seconds: int) -> Rate:
    argv = ["wrk", "--latency", "-t1", f"-c{connections}", f"-d{seconds}s"]
    text = peer.run("exec", *argv, "-H", hub.authorization, hub.url + path)
    if "Non-2xx" in text or "Socket errors" in text:
        raise SystemExit(f"{hub.name}: {text}")
    rate = re.search(r"Requests/sec: +([\d.]+)", text)
    half = re.search(r"50% +([\d.]+)(us|ms|s)\b", text)
    assert rate, text
    assert half, text
    return Rate(float(rate[1]), float(half[1]) * UNITS[half[2]])


def _table(connections: int, rates: dict[str, list[Rate]]) -> list[str]:
    """Medians, and the medians of the rounds' ratios of the last to the first."""
    lines = []
    first, *_, last = rates.values()
    for title, part in (("1/s", lambda r: r.per_second), ("p50, ms", lambda r: r.p50)):
        columns = "".join(f"{statistics.median(map(part, r)):14.2f}" for r in rates.values())
        pairs = zip(map(part, last), map(part, first), strict=True)
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        name = f"  {connections} connections, {title}"
        lines.append(f"{name:26}{columns}   ratio {ratio:.2f}")
    return lines


def calls(cluster: Cluster, theirs: Hub, ours: Hub, seconds: int) -> str:
    """RPCs a minute without servers and with two of each hub's, which belong to different users."""
    idle = _counted(cluster, seconds)
    for hub in (theirs, ours):
        for name in SERVERS:
            hub.start(name)
    try:
        busy = _counted(cluster, seconds)
    finally:
        for hub in (theirs, ours):
            for name in SERVERS:
                hub.stop(name)
    lines = [f"{'RPCs of Slurm a minute':26}{'no server':>14}{'two servers':>14}{'each':>9}"]
    for title, users in (("batchspawner", (theirs.user,)), ("ours", (*PORTAL, ours.user))):
        before, after = (sum(counts.get(user, 0) for user in users) for counts in (idle, busy))
        minute = 60 / seconds
        each = (after - before) / len(SERVERS)
        lines.append(
            f"  {title:24}{before * minute:14.1f}{after * minute:14.1f}{each * minute:9.1f}"
        )
    return "\n".join(lines)


def _counted(cluster: Cluster, seconds: int) -> dict[str, int]:
    """RPCs by user, during some seconds."""
    time.sleep(5)  # what starting has asked for
    cluster.run("ctl", "sdiag", "--reset")
    time.sleep(seconds)
    text = cluster.run("ctl", "sdiag").partition("statistics by user")[2].partition("Pending")[0]
    lines = re.findall(r"^\s+(\S+)\s+\(\s*\d+\)\s+count:(\d+)", text, re.M)
    return {user: int(count) for user, count in lines}
