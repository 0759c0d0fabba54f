"""Slurm's commands, each a pair of argument list and output parser.

squeue is in queue.py, sacct in accounting.py, limits in limits/.
One text format works for Slurm 22.05 to 26.05: -O with a unit separator after every field.
User-written text is not queried here (see texts.py), so lines cannot be forged; a line with the
wrong number of fields raises an error, since guessing could end a session.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache

from portal.core.cluster.inventory import Node, NodeGpus, Partition
from portal.core.cluster.job_reports import JobState, job_state
from portal.core.cluster.limits import Tres
from portal.node.common.gres import parse_gres, split_gres
from portal.node.common.node_lists import expand_nodes

SEPARATOR = "\x1f"

ENVIRONMENT = ("TZ=UTC", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0", "LC_ALL=C.UTF-8")
"""Environment of every query: times in seconds since 1970, messages in English, complete lists of
an array's tasks. By default Slurm truncates these to 64 characters, which hides tasks that still
wait. Slurm bounds the number of tasks in its queue, and thereby the length of the lists."""


class UnexpectedOutput(Exception):
    """A command printed something that no known version of Slurm prints."""


_NODE_FIELDS = ("Partition", "Available", "CPUs", "Memory", "Time", "Gres")


def user_argv(number: str) -> list[str]:
    """The user name of a UID."""
    return ["id", "--name", "--user", number]


def sinfo_argv() -> list[str]:
    """List every node once for each of its partitions."""
    fields = ",".join(f"{field}:{SEPARATOR}" for field in _NODE_FIELDS)
    return ["sinfo", "--noheader", "--all", "--Node", f"--Format={fields}"]


def sinfo_parse(text: str) -> list[Partition]:
    """Parse sinfo's lines to partitions, the default first, each with its largest node."""
    partitions: dict[str, Partition] = {}
    for line in text.split("\n"):
        if not line.strip():
            continue
        fields = line.split(SEPARATOR)
        if len(fields) != len(_NODE_FIELDS) + 1:
            raise UnexpectedOutput(f"sinfo: {len(fields)} fields in {line!r}")
        name, available, cpus, memory, limit, gres = map(str.strip, fields[:-1])
        earlier = partitions.get(name.rstrip("*"))
        partitions[name.rstrip("*")] = Partition(
            name=name.rstrip("*"),
            default=name.endswith("*"),
            up=available == "up",
            max_cpus=max(int(cpus), earlier.max_cpus if earlier else 0),
            max_memory_mb=max(int(memory), earlier.max_memory_mb if earlier else 0),
            max_minutes=parse_minutes(limit),
            gpus=_largest(node_gpus(gres), earlier.gpus if earlier else ()),
        )
    # sinfo sorts by nodes, and the order of a node's partitions is undefined.
    return sorted(partitions.values(), key=lambda entry: (not entry.default, entry.name))


def node_gpus(text: str) -> tuple[NodeGpus, ...]:
    """The GPUs of a node by kind, from a list such as "gpu:a100:2(S:0-1),shard:a100:8"."""
    gpus: dict[str, int] = {}
    shards: dict[str, int] = {}
    for entry in split_gres(text):
        with suppress(ValueError):  # a resource of another format, or "(null)"
            gres = parse_gres(entry)
            counts = {"gpu": gpus, "shard": shards}.get(gres.name, {})
            counts[gres.type] = counts.get(gres.type, 0) + gres.count
    if gpus and "" in shards and "" not in gpus:  # untyped shards belong to the node's GPUs
        first = next(iter(gpus))
        shards[first] = shards.get(first, 0) + shards.pop("")
    return tuple(NodeGpus(kind, number, shards.get(kind, 0)) for kind, number in gpus.items())


def _largest(first: Sequence[NodeGpus], second: Sequence[NodeGpus]) -> tuple[NodeGpus, ...]:
    """The larger number of GPUs of two nodes for each kind."""
    largest: dict[str, NodeGpus] = {}
    for gpus in (*first, *second):
        earlier = largest.get(gpus.kind, NodeGpus(gpus.kind, 0))
        most = max(gpus.gpus, earlier.gpus), max(gpus.shards, earlier.shards)
        largest[gpus.kind] = NodeGpus(gpus.kind, *most)
    return tuple(largest[kind] for kind in sorted(largest))


_HOST_FIELDS = (
    "NodeHost", "Partition", "CPUs", "Memory", "StateComplete", "Gres", "Features_act", "Reason",
)  # fmt: skip
_NOTHING = ("none", "(null)")
MAX_REASON = 200
"""Characters of a node's reason that are kept."""
_UNUSABLE = re.compile(
    r"\b(down|drain\w*|fail\w*|maint\w*|reserved|unknown|future|not_responding)\b", re.IGNORECASE
)


def nodes_argv() -> list[str]:
    """List every node by name, once for each of its partitions."""
    fields = ",".join(f"{field}:{SEPARATOR}" for field in _HOST_FIELDS)
    return ["sinfo", "--noheader", "--all", "--Node", f"--Format={fields}"]


def nodes_parse(text: str) -> list[Node]:
    """Parse sinfo's lines to nodes, and whether they currently accept jobs."""
    nodes = []
    # The reason is free text: it may contain line breaks.
    for line in filter(str.strip, text.split(f"{SEPARATOR}\n")):
        fields = line.split(SEPARATOR, len(_HOST_FIELDS) - 1)
        if len(fields) != len(_HOST_FIELDS):
            raise UnexpectedOutput(f"sinfo: {len(fields)} fields in {line!r}")
        name, partition, cpus, memory, state, gres, features, reason = map(str.strip, fields)
        usable, gpus = not _UNUSABLE.search(state), node_gpus(gres)
        nodes.append(
            Node(
                name,
                partition.rstrip("*"),
                int(cpus),
                int(memory),
                usable,
                gpus,
                state.lower(),
                _feature_names(features),
                _plain_reason(reason),
            )
        )
    # sinfo prints a node's partitions in another order each time.
    first = {node.name: number for number, node in reversed(list(enumerate(nodes)))}
    return sorted(nodes, key=lambda node: (first[node.name], node.partition))


def _feature_names(text: str) -> tuple[str, ...]:
    return () if text in _NOTHING else tuple(filter(None, text.split(",")))


def _plain_reason(text: str) -> str:
    # Normalized as the text of a filter is, which has to be equal.
    text = unicodedata.normalize("NFC", text)
    reason = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return "" if reason in _NOTHING else reason[:MAX_REASON]


def sbatch_argv() -> list[str]:
    """Submit the script on standard input, which has its own #SBATCH lines."""
    return ["sbatch", "--parsable"]


def is_job_id(text: str) -> bool:
    """Whether this can be a job id: at most 10 ASCII digits."""
    return re.fullmatch(r"[0-9]{1,10}", text) is not None


TARGET = re.compile(r"[0-9]{1,10}(_[0-9]{1,9})?", re.ASCII)
"""A job, an array or one task of an array, as Slurm's commands take it."""


def release_argv(job_id: str) -> list[str]:
    """Release a job's hold; no error if there is none."""
    return ["scontrol", "release", job_id]


def extend_argv(job_id: str, minutes: int) -> list[str]:
    """Set a job's time limit to `minutes` in total. Idempotent."""
    return ["scontrol", "update", f"JobId={job_id}", f"TimeLimit={minutes}"]


def begin_argv(job_id: str, seconds: int) -> list[str]:
    """Set the earliest start of a pending job, `seconds` from now. Idempotent."""
    # Times of day would be read in the login node's time zone.
    return ["scontrol", "update", f"JobId={job_id}", f"StartTime=now+{seconds}"]


def scancel_argv(*job_ids: str, user: str = "") -> list[str]:
    """Cancel jobs, with `user` only this user's; no error for jobs that have ended."""
    return ["scancel", "--quiet", *([f"--user={user}"] if user else []), *job_ids]


_cached = lru_cache(maxsize=4096)
"""For parsers of words that many jobs of a queue share."""
_UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


@_cached
def amount(text: str) -> Tres:
    """Parse Slurm's list of TRES, such as "cpu=3,mem=3G,gres/shard=2".

    Typed entries ("gres/shard:a100=2") are ignored: they are part of the untyped total.
    """
    items = dict(item.partition("=")[::2] for item in text.split(",") if "=" in item)
    match = re.fullmatch(r"([0-9.]+)([KMGTP]?)", items.get("mem", ""))
    cpus, shards, gpus = (items.get(name, "") for name in ("cpu", "gres/shard", "gres/gpu"))
    return Tres(
        int(cpus) if cpus.isdigit() else None,
        round(float(match[1]) * _UNITS[match[2] or "M"]) if match else None,
        int(shards) if shards.isdigit() else None,
        int(gpus) if gpus.isdigit() else None,
    )


@_cached
def parse_minutes(text: str) -> int | None:
    """Minutes of Slurm's [days-]hours:minutes:seconds; None for no limit."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)
    if match is None:
        return None
    days, hours, minutes, _seconds = (int(part or 0) for part in match.groups())
    return days * 1440 + hours * 60 + minutes


@_cached
def read_state(word: str) -> JobState:
    try:
        return job_state(word)
    except ValueError as error:
        raise UnexpectedOutput(f"unknown job state {word!r}") from error


def read_nodes(text: str) -> tuple[str, ...]:
    """Expand a list of nodes; raises UnexpectedOutput."""
    try:
        return expand_nodes(text)
    except ValueError as error:
        raise UnexpectedOutput(str(error)) from error


def read_time(text: str) -> datetime | None:
    """Parse seconds since 1970 (our SLURM_TIME_FORMAT); None for anything else, and for 0."""
    # More digits could exceed the range of a datetime.
    if re.fullmatch(r"[0-9]{1,11}", text) and int(text):
        return datetime.fromtimestamp(int(text), UTC)
    return None


def exit_code(text: str) -> int | None:
    """The exit code: squeue prints a wait status up to 22.05 and "code:signal" later."""
    code = text.partition(":")[0]
    if not code.isdigit():
        return None
    number = int(code)
    return number >> 8 if number > 255 else number


def exit_signal(text: str) -> int | None:
    """The signal that ended a job, from "code:signal" or a wait status; None for none."""
    code, colon, signal = text.partition(":")
    if not colon:  # a wait status, up to 22.05
        number = int(code) & 0x7F if code.isdecimal() else 0
    else:
        number = int(signal) if signal.isdecimal() else 0
    return number if 0 < number < MEMORY_SIGNAL else None


MEMORY_SIGNAL = 125
"""Not a signal: Slurm's code for a step that was killed for its memory use."""
