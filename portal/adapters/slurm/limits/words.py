"""How Slurm's commands print names, numbers and records of limits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from portal.adapters.slurm.commands import UnexpectedOutput, amount
from portal.core.cluster.limits import Minutes

_NOTHING = ("", "(null)", "none", "n/a")
_KEY = re.compile(r"(?:^|(?<= ))([A-Z][A-Za-z/]*)=")


def show(what: str, fields: Sequence[str]) -> list[str]:
    """The query of sacctmgr that prints these fields, separated by bars."""
    return ["sacctmgr", "--noheader", "--parsable2", "show", what, f"format={','.join(fields)}"]


def rows(text: str, fields: Sequence[str]) -> list[list[str]]:
    """The fields of sacctmgr's records.

    sacctmgr has no separator but "|" and line breaks, which Slurm permits in names of accounts.
    Such records are left out: one odd name must not hide the limits of everybody else. Raises
    UnexpectedOutput if no line is a record.
    """
    lines = list(filter(str.strip, text.split("\n")))
    found = [[value.strip() for value in line.split("|")] for line in lines]
    fitting = [values for values in found if len(values) == len(fields)]
    if lines and not fitting:
        raise UnexpectedOutput(f"sacctmgr: not {len(fields)} fields in {lines[0][:200]!r}")
    return fitting


def described(text: str) -> dict[str, str]:
    """Names and descriptions from lines "name|description".

    A description may contain bars and line breaks. What looks like a second line about the same
    name could be a piece of another one's description, so that name gets none.
    """
    found: dict[str, str] = {}
    twice: set[str] = set()
    for line in text.split("\n"):
        name, bar, description = line.partition("|")
        if bar and name in found:
            twice.add(name)
        if bar:
            found.setdefault(name, clean(description))
    return {name: words for name, words in found.items() if name not in twice}


def clean(text: str) -> str:
    """Text of a site's administrators without what no page could show."""
    return "".join(c if c.isprintable() else " " for c in text).strip()[:200]


def record(line: str) -> dict[str, str]:
    """The fields of a line "Name=value Other=value", whose values may contain spaces.

    A value that looks like a field itself does not replace the real one, which comes earlier.
    """
    found: dict[str, str] = {}
    marks = list(_KEY.finditer(line))
    ends = [*(mark.start() for mark in marks[1:]), len(line)]
    for mark, end in zip(marks, ends, strict=bool(marks)):
        found.setdefault(mark[1], line[mark.end() : end].strip())
    return found


def names(text: str) -> tuple[str, ...]:
    """The names of a list; () for nothing."""
    if text.lower() in _NOTHING:
        return ()
    return tuple(name for name in text.split(",") if name)


def word(text: str) -> str:
    """One value; "" if Slurm says that there is none."""
    return "" if text.lower() in _NOTHING else text


def number(text: str) -> int | None:
    """A number; None for no limit."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def minutes_of(text: str) -> Minutes:
    """Amounts over time, such as "cpu=1000,mem=2000,gres/gpu=5"."""
    found = amount(text)
    return Minutes(found.cpus, found.memory_mb, found.shards, found.gpus)
