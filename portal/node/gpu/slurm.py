"""What Slurm reports about a job on this node, and about the node itself.

Read as JSON: in scontrol's plain text a job's name may contain line breaks, and so could forge
lines such as `Nodes=n1 ... GRES=shard:4(4/4)`. Names are in the JSON as their users wrote them, in
any bytes; nothing of an answer is searched for words, since a job may be called like any of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from portal.node.common.gres import Gres, parse_gres, split_gres
from portal.node.common.node_lists import expand_nodes
from portal.node.gpu import untrusted

SECONDS = 10

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
        details = dict(zip(expand_nodes(data["nodes"]), data["gres_detail"]))
        return NodeJob(
            uid=data["user_id"],
            gid=data["group_id"],
            over=not _OVER.isdisjoint(words),
            gres=_parse_gres(details.get(node, "")),
            completing="COMPLETING" in words,
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SlurmError(f"scontrol's output for job {job} cannot be parsed: {error!r}") from error


def _parse_gres(text: str) -> tuple[Gres, ...]:
    """Parse `gpu:a100:1(IDX:0)`, `shard:2(2/4)`, `shard:a100:2(0/8,2/8)` and lists of these."""
    try:
        return tuple(parse_gres(entry) for entry in split_gres(text))
    except ValueError as error:
        raise SlurmError(str(error)) from error
