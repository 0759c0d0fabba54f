"""A cluster whose Slurm is configured as some sites have it, and set back afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from tests.support.cluster import Cluster, gives_shares, wait_for

MACHINES = ("ctl", "login", "n1", "n2")
FOLDER = "/etc/slurm"
Settings = Mapping[str, str | None]
"""Lines of a file by their names; None removes a line."""


def edited(text: str, settings: Settings) -> str:
    """The text of a configuration file with other values; new names are added at the end."""
    lines = []
    left = dict(settings)
    for line in text.splitlines():
        name = line.partition("=")[0].strip()
        if name not in settings:
            lines.append(line)
        elif name in left and (value := left.pop(name)) is not None:
            lines.append(f"{name}={value}")
    lines += [f"{name}={value}" for name, value in left.items() if value is not None]
    return "\n".join(lines) + "\n"


def without_shards(text: str) -> str:
    """The text of slurm.conf or gres.conf of a cluster that knows only whole GPUs."""
    kept = [line for line in text.splitlines() if " Name=shard " not in line]
    return re.sub(r",(gres/)?shard(:\d+)?\b", "", "\n".join(kept)) + "\n"


def without_accounts(text: str) -> str:
    """The text of slurm.conf whose partitions name no accounts and no QOS.

    Without accounting, slurmctld 26.05 does not start with an AllowQos that it cannot look up.
    """
    return re.sub(r" (Allow|Deny)(Accounts|Qos)=\S+", "", text)


@contextmanager
def configured(
    cluster: Cluster,
    settings: Settings,
    *,
    shards: bool = True,
    more: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """The cluster with other settings in slurm.conf, and with more files beside it."""
    names = ("slurm.conf", "gres.conf")
    saved = {
        (machine, name): cluster.run(machine, "cat", f"{FOLDER}/{name}")
        for machine in MACHINES
        for name in names
    }
    try:
        for (machine, name), text in saved.items():
            changed = edited(text, settings) if name == "slurm.conf" else text
            if "AccountingStorageType" in settings:
                changed = without_accounts(changed)
            changed = changed if shards else without_shards(changed)
            cluster.ctl("put", machine, f"{FOLDER}/{name}", stdin=changed)
        for name, text in (more or {}).items():
            for machine in MACHINES:
                cluster.ctl("put", machine, f"{FOLDER}/{name}", stdin=text)
        restart(cluster)
        yield
    finally:
        for (machine, name), text in saved.items():
            cluster.ctl("put", machine, f"{FOLDER}/{name}", stdin=text)
        for name in more or {}:
            for machine in MACHINES:
                cluster.run(machine, "rm", "-f", f"{FOLDER}/{name}")
        restart(cluster)
        # What Slurm has forgotten meanwhile.
        cluster.daemon("restart", "ctl", "reservations")
        wait_for("shares of GPUs", lambda: gives_shares(cluster), 60)


def restart(cluster: Cluster) -> None:
    """Have all daemons of Slurm read their files, and wait until the nodes take jobs."""
    for machine in ("n1", "n2"):
        cluster.daemon("stop", machine, "slurmd")
    cluster.daemon("restart", "ctl", "slurmctld")
    for machine in ("n1", "n2"):
        cluster.daemon("start", machine, "slurmd")
    wait_for("idle nodes", lambda: _idle(cluster), 60)


def _idle(cluster: Cluster) -> bool:
    for name in ("n1", "n2"):  # a daemon that was away for long, and ReturnToService=0
        cluster.run("ctl", "scontrol", "update", f"NodeName={name}", "State=RESUME", check=False)
    words = ["sinfo", "--noheader", "--Node", "--partition=main", "--Format=StateCompact"]
    return set(cluster.run("login", *words, check=False).split()) == {"idle"}


@contextmanager
def partitions(cluster: Cluster, wanted: Mapping[str, str]) -> Iterator[None]:
    """More partitions by name, each with its settings."""
    try:
        for name, words in wanted.items():
            made = ["scontrol", "create", f"PartitionName={name}", *words.split()]
            cluster.run("ctl", *made)
        yield
    finally:
        for name in wanted:
            cluster.run("ctl", "scancel", f"--partition={name}", check=False)
        wait_for("only the usual ones", lambda: _deleted(cluster, wanted), 60)


def _deleted(cluster: Cluster, names: Iterable[str]) -> bool:
    """Slurm keeps a partition in which a job is ending."""
    for name in names:
        cluster.run("ctl", "scontrol", "delete", f"PartitionName={name}", check=False)
    left = cluster.run("ctl", "sinfo", "--all", "--noheader", "--format=%R").splitlines()
    return not set(names) & {name.strip() for name in left}


def check_results(cluster: Cluster) -> dict[str, bool]:
    """What `slipway check` prints, and whether each is in order."""
    text = cluster.run("portal", "slipway", "check", check=False)
    lines = [line.partition(" ") for line in text.splitlines()]
    return {words.strip(): mark == "ok" for mark, _, words in lines}


def is_in_order(findings: Mapping[str, bool], words: str) -> bool:
    """Whether the one finding with these words is in order; fails if there is none."""
    found = {text: ok for text, ok in findings.items() if words in text}
    assert len(found) == 1, f"{words!r} in {findings}"
    return next(iter(found.values()))
