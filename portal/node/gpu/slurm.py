"""Query slurmctld for jobs on this node, and for the node itself.

Read as JSON: in scontrol's plain text a job's name may contain line breaks, and so could forge
lines such as `Nodes=n1 ... GRES=shard:4(4/4)`. Names are in the JSON as their users wrote them, in
any bytes; answers are never searched for words, since a job's name may be any of them.
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
    """Whether it is drained or draining."""
    reason: str


def ask(job: int, node: str) -> NodeJob:
    """Query slurmctld for a job; raises SlurmError."""
    result = _scontrol("show", "job", str(job), "--json")
    if result.code != 0:
        if "Invalid job id" in result.stderr or _INVALID_JOB_ID in _errors(result.stdout):
            raise NoSuchJob(f"Slurm has no job {job}")
        raise SlurmError(f"scontrol: {result.stderr.strip() or result.code}")
    return parse(result.stdout, job, node)


def ask_node(name: str) -> Node:
    """Query slurmctld for this node; raises SlurmError."""
    result = _scontrol("show", "node", name, "--json")
    if result.code != 0:
        raise SlurmError(f"scontrol: {result.stderr.strip() or result.code}")
    try:
        (data,) = (entry for entry in _load(result.stdout)["nodes"] if entry["name"] == name)
        states = data["state"]  # a text up to Slurm 22.05: "IDLE+DRAIN"
        words = states.split("+") if isinstance(states, str) else states
        drained = any(word in ("DRAIN", "DRAINED", "DRAINING") for word in words)
        return Node(drained, str(data["reason"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SlurmError(f"scontrol's output for {name} cannot be parsed: {error!r}") from error


def update_node(name: str, state: str, reason: str = "") -> None:
    """Change this node's state, with a reason; raises SlurmError."""
    words = [f"NodeName={name}", f"State={state}", *([f"Reason={reason}"] if reason else [])]
    result = _scontrol("update", *words)
    if result.code != 0:
        raise SlurmError(f"scontrol: {result.stderr.strip() or result.code}")


def _scontrol(*words: str) -> untrusted.Completed:
    try:
        return untrusted.run(["scontrol", *words], SECONDS)
    except untrusted.CommandError as error:
        raise SlurmError(str(error)) from error


def _load(text: str) -> dict[str, Any]:
    """Decode an answer of Slurm; raises ValueError, RecursionError."""
    answer = json.loads(text, strict=False)  # old versions print control characters as they are
    if not isinstance(answer, dict):
        raise ValueError("not an object")
    return answer


def _errors(text: str) -> set[int]:
    """Return the numbers in an answer's `errors`, which users cannot write to."""
    try:
        return {error["error_number"] for error in _load(text)["errors"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return set()


def parse(text: str, job: int, node: str) -> NodeJob:
    """Parse `scontrol show job ID --json`; raises SlurmError.

    For the last task of an array, and for the first component of a heterogeneous job, scontrol
    prints all the others as well.
    """
    try:
        jobs = [data for data in _load(text)["jobs"] if data["job_id"] == job]
        if len(jobs) != 1:
            raise NoSuchJob(f"Slurm reports {len(jobs)} jobs {job}")
        (data,) = jobs
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
