"""Slurm's list of what a job waits for, in words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from portal.core.units import plural

_KINDS = {
    "after": "has started",
    "afterany": "has ended",
    "afterok": "has ended successfully",
    "afternotok": "has failed",
    "aftercorr": "has ended successfully, each task after the one of its number",
    "afterburstbuffer": "has ended and its data are copied",
    "expand": "gives it its resources",
}
_STATES = {"unfulfilled": "", "failed": "which can no longer happen", "fulfilled": "which it has"}
_PART = re.compile(
    r"(?:(?P<kind>[a-z]{1,20}):)?(?P<id>[0-9]{1,10}(?:_(?:[0-9]{1,9}|\*))?)"
    r"(?:\+(?P<more>[0-9]{1,9}))?(?:\((?P<state>\w{1,20})\))?"
)
MOST = 100
"""Dependencies that are read of one job."""


@dataclass(frozen=True)
class Dependency:
    """One thing that a job waits for."""

    text: str
    """What must be the case of the other job, after its number."""
    id: str = ""
    """The other job, or an array; "" if it is none in particular."""
    note: str = ""


def dependencies(text: str) -> tuple[list[Dependency], bool]:
    """What a job waits for, and whether one of them is enough; what is not understood stays."""
    found: list[Dependency] = []
    kind = ""
    parts = [part for part in re.split(r"[,?]", text) if part.strip()]
    for part in parts[:MOST]:
        match = _PART.fullmatch(part.strip())
        if part.partition("(")[0] == "singleton":
            found.append(Dependency("no earlier job of this name and owner is left"))
        elif match is None or (match["kind"] or kind) not in _KINDS:
            found.append(Dependency(part))
        else:
            kind = match["kind"] or kind
            found.append(_dependency(kind, match))
    return found, "?" in text


def _dependency(kind: str, match: re.Match[str]) -> Dependency:
    text, number, more = _KINDS[kind], match["id"].removesuffix("_*"), match["more"]
    if more and kind == "after":  # minutes; elsewhere a component of a heterogeneous job
        text = f"{text} {plural(int(more), 'minute')} ago"
    elif more:
        number = f"{number}+{more}"
    return Dependency(text, number, _STATES.get(match["state"] or "", ""))
