"""Slurm's settings on a running cluster, changed for a while."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.cluster import Cluster, gives_shares, wait_for

LABELLED = 10.0
"""Seconds between a change in Slurm and its display in the portal."""


def scontrol(cluster: Cluster, *words: str, user: str = "") -> None:
    """Change something with Slurm's own command."""
    cluster.run("login" if user else "ctl", "scontrol", *words, user=user)


@contextmanager
def short_slurmd_timeout(cluster: Cluster) -> Iterator[None]:
    """Let Slurm declare nodes down quickly."""
    change = "sed -i 's/^SlurmdTimeout=.*/SlurmdTimeout={}/' /etc/slurm/slurm.conf"
    for seconds in (5, 60):
        cluster.shell("ctl", change.format(seconds))
        scontrol(cluster, "reconfigure")
        if seconds == 5:
            yield


FORGETS = "MinJobAge=2"


@contextmanager
def short_job_age(cluster: Cluster) -> Iterator[None]:
    """Let Slurm's queue forget jobs soon after their end."""
    change = f"sed -i 's/^MinJobAge=.*/{FORGETS}/' /etc/slurm/slurm.conf"
    before = cluster.shell("ctl", "grep ^MinJobAge= /etc/slurm/slurm.conf").strip()
    cluster.shell("ctl", change)
    cluster.daemon("restart", "ctl", "slurmctld")
    try:
        yield
    finally:
        cluster.shell("ctl", change.replace(FORGETS, before))
        cluster.daemon("restart", "ctl", "slurmctld")
        wait_for("slurmctld and its GPU", lambda: gives_shares(cluster))


@contextmanager
def changed_limit(cluster: Cluster, what: str, limit: str, back: str) -> Iterator[None]:
    """Change a limit for a while."""
    cluster.run("ctl", "sacctmgr", "-i", "modify", *what.split(), "set", limit)
    try:
        yield
    finally:
        cluster.run("ctl", "sacctmgr", "-i", "modify", *what.split(), "set", back)


QUERY_TOLERANCE = 14
"""Tolerated difference per window: each poll makes two, a reading every ten seconds eight."""


def query_count(cluster: Cluster) -> int:
    """The number of RPCs that slurmctld has received from the portal and its users."""
    text = cluster.run("ctl", "sdiag")
    by_user = text.split("Remote Procedure Call statistics by user", 1)[1].split("Pending RPC")[0]
    found = re.findall(r"^\s*(\w+)\s*\(\s*\d+\) count:(\d+)", by_user, re.MULTILINE)
    counts = {user: int(count) for user, count in found}
    assert counts["slipway"] > 0
    return sum(counts.get(user, 0) for user in ("slipway", "alice", "bob", "admin"))
