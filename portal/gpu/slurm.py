"""What Slurm reports about a job on this node.

Read as JSON: in scontrol's plain text a job's name may contain line breaks, and so could forge
lines such as `Nodes=n1 ... GRES=shard:4(4/4)`.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

SECONDS = 10

_GRES = re.compile(r"(?P<name>\w+):(?:(?P<type>[\w.-]+):)?(?P<count>\d+)(?:\((?P<detail>[^)]*)\))?")
_SHARES = re.compile(r"(\d+)/(\d+)")
_BRACKET = re.compile(r"\[([^\]]*)\]")
_OVER = {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE"}


class SlurmError(Exception):
    """Slurm gave no answer; the text says why."""


class NoSuchJob(SlurmError):
    """Slurm has no such job, or no longer."""


@dataclass(frozen=True)
class Gres:
    """One generic resource (GRES) that a job holds on one node."""

    name: str
    type: str
    count: int
    shares: tuple[tuple[int, int], ...] = ()
    """For shards: (held, total) of each GPU of the job, in the node's order."""


@dataclass(frozen=True)
class NodeJob:
    """A job's part on this node."""

    uid: int
    gid: int
    over: bool
    gres: tuple[Gres, ...]


def ask(job: int, node: str) -> NodeJob:
    """Query slurmctld for a job; raises SlurmError."""
    try:
        done = subprocess.run(
            ["scontrol", "show", "job", str(job), "--json"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"scontrol: {error}") from error
    if "Invalid job id" in done.stderr + done.stdout:
        raise NoSuchJob(f"Slurm has no job {job}")
    if done.returncode != 0:
        raise SlurmError(f"scontrol: {done.stderr.strip() or done.returncode}")
    return parse(done.stdout, job, node)


def parse(text: str, job: int, node: str) -> NodeJob:
    """Parse `scontrol show job ID --json`; raises SlurmError.

    For the last task of an array, and for the first component of a heterogeneous job, scontrol
    prints all the others as well.
    """
    try:
        found = [data for data in json.loads(text)["jobs"] if data["job_id"] == job]
        if len(found) != 1:
            raise NoSuchJob(f"Slurm reports {len(found)} jobs {job}")
        (data,) = found
        states = data["job_state"]
        details = dict(zip(expand(data["nodes"]), data["gres_detail"]))
        return NodeJob(
            uid=data["user_id"],
            gid=data["group_id"],
            over=bool(_OVER.intersection([states] if isinstance(states, str) else states)),
            gres=tuple(parse_gres(details.get(node, ""))),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise SlurmError(f"scontrol's output for job {job} cannot be parsed: {error!r}") from error


def parse_gres(text: str) -> Iterator[Gres]:
    """Parse `gpu:a100:1(IDX:0)`, `shard:2(2/4)`, `shard:a100:2(0/8,2/8)` and lists of these."""
    place = 0
    while place < len(text):
        match = _GRES.match(text, place)
        if match is None:
            raise SlurmError(f"unknown GRES format: {text!r}")
        shares = ((int(held), int(of)) for held, of in _SHARES.findall(match["detail"] or ""))
        yield Gres(
            name=match["name"],
            type=match["type"] or "",
            count=int(match["count"]),
            shares=tuple((held, of) for held, of in shares if held),
        )
        place = match.end() + 1  # the comma


def expand(nodes: str) -> list[str]:
    """The names in `n[1-2,04],login`, in Slurm's order."""
    found: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", nodes):
        found += _expand_one(part)
    return found


def _expand_one(part: str) -> list[str]:
    match = _BRACKET.search(part)
    if match is None:
        return [part]
    names: list[str] = []
    for piece in match[1].split(","):
        first, _, last = piece.partition("-")
        for number in range(int(first), int(last or first) + 1):
            middle = str(number).zfill(len(first))
            names += _expand_one(part[: match.start()] + middle + part[match.end() :])
    return names
