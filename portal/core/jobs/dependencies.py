"""Slurm's list of a job's dependencies, in words."""

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
"""Maximum number of dependencies that are parsed for one job."""


@dataclass(frozen=True)
class Dependency:
    """One dependency of a job."""

    text: str
    """The condition on the other job, to be shown after its number."""
    id: str = ""
    """The other job, or an array; "" for no particular one."""
    note: str = ""


def dependencies(text: str) -> tuple[list[Dependency], bool]:
    """A job's dependencies, and whether one is enough; an unparsable one is shown as it is."""
    parsed: list[Dependency] = []
    kind = ""
    parts = [part for part in re.split(r"[,?]", text) if part.strip()]
    for part in parts[:MOST]:
        match = _PART.fullmatch(part.strip())
        if part.partition("(")[0] == "singleton":
            parsed.append(Dependency("no earlier job of this name and owner is left"))
        elif match is None or (match["kind"] or kind) not in _KINDS:
            parsed.append(Dependency(part))
        else:
            kind = match["kind"] or kind
            parsed.append(_dependency(kind, match))
    return parsed, "?" in text


def _dependency(kind: str, match: re.Match[str]) -> Dependency:
    text, number, offset = _KINDS[kind], match["id"].removesuffix("_*"), match["more"]
    if offset and kind == "after":  # minutes; for other kinds, the component of a heterogeneous job
        text = f"{text} {plural(int(offset), 'minute')} ago"
    elif offset:
        number = f"{number}+{offset}"
    return Dependency(text, number, _STATES.get(match["state"] or "", ""))
