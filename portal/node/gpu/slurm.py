"""What Slurm reports about a job on this node, and about the node itself.

Read as JSON: in scontrol's plain text a job's name may contain line breaks, and so could forge
lines such as `Nodes=n1 ... GRES=shard:4(4/4)`. Names are in the JSON as their users wrote them, in
any bytes; nothing of an answer is searched for words, since a job may be called like any of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from portal.node.gpu import untrusted

SECONDS = 10

_GRES = re.compile(r"(?P<name>\w+):(?:(?P<type>[\w.-]+):)?(?P<count>\d+)(?:\((?P<detail>[^)]*)\))?")
_SHARES = re.compile(r"(\d+)/(\d+)")
_BRACKET = re.compile(r"\[([^\]]*)\]")
_OVER = {
    *("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE"),
    *("BOOT_FAIL", "PREEMPTED"),
}
_INVALID_JOB_ID = 2017
"""ESLURM_INVALID_JOB_ID of slurm_errno.h."""


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
    completing: bool = False
    """Whether Slurm still waits for its nodes, though its state is final."""


@dataclass(frozen=True)
class Node:
    """This node, as slurmctld knows it."""

    drained: bool
    """Whether it is drained, or draining."""
    reason: str


def ask(job: int, node: str) -> NodeJob:
    """Query slurmctld for a job; raises SlurmError."""
    done = _scontrol("show", "job", str(job), "--json")
    if done.code != 0:
        if "Invalid job id" in done.stderr or _INVALID_JOB_ID in _errors(done.stdout):
            raise NoSuchJob(f"Slurm has no job {job}")
        raise SlurmError(f"scontrol: {done.stderr.strip() or done.code}")
    return parse(done.stdout, job, node)


def ask_node(name: str) -> Node:
    """Query slurmctld for this node; raises SlurmError."""
    done = _scontrol("show", "node", name, "--json")
    if done.code != 0:
        raise SlurmError(f"scontrol: {done.stderr.strip() or done.code}")
    try:
        (data,) = (one for one in _load(done.stdout)["nodes"] if one["name"] == name)
        states = data["state"]  # a text up to Slurm 22.05: "IDLE+DRAIN"
        words = states.split("+") if isinstance(states, str) else states
        drained = any(word in ("DRAIN", "DRAINED", "DRAINING") for word in words)
        return Node(drained, str(data["reason"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SlurmError(f"scontrol's output for {name} cannot be parsed: {error!r}") from error


def update_node(name: str, state: str, reason: str = "") -> None:
    """Change this node's state, with a reason; raises SlurmError."""
    words = [f"NodeName={name}", f"State={state}", *([f"Reason={reason}"] if reason else [])]
    done = _scontrol("update", *words)
    if done.code != 0:
        raise SlurmError(f"scontrol: {done.stderr.strip() or done.code}")


def _scontrol(*words: str) -> untrusted.Completed:
    try:
        return untrusted.run(["scontrol", *words], SECONDS)
    except untrusted.CommandError as error:
        raise SlurmError(str(error)) from error


def _load(text: str) -> dict[str, Any]:
    """An answer of Slurm's; raises ValueError, RecursionError."""
    found = json.loads(text, strict=False)  # old versions print control characters as they are
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _errors(text: str) -> set[int]:
    """The numbers of the errors that an answer names, beside all that users wrote."""
    try:
        return {one["error_number"] for one in _load(text)["errors"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return set()


def parse(text: str, job: int, node: str) -> NodeJob:
    """Parse `scontrol show job ID --json`; raises SlurmError.

    For the last task of an array, and for the first component of a heterogeneous job, scontrol
    prints all the others as well.
    """
    try:
        found = [data for data in _load(text)["jobs"] if data["job_id"] == job]
        if len(found) != 1:
            raise NoSuchJob(f"Slurm reports {len(found)} jobs {job}")
        (data,) = found
        states = data["job_state"]
        words = {states} if isinstance(states, str) else set(states)
        details = dict(zip(expand(data["nodes"]), data["gres_detail"]))
        return NodeJob(
            uid=data["user_id"],
            gid=data["group_id"],
            over=not _OVER.isdisjoint(words),
            gres=tuple(parse_gres(details.get(node, ""))),
            completing="COMPLETING" in words,
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
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
