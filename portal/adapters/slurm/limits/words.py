"""Parsers of the names, numbers and records that Slurm's commands print about limits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from portal.adapters.slurm.commands import UnexpectedOutput, amount
from portal.core.cluster.limits import Minutes

_NOTHING = ("", "(null)", "none", "n/a")
_KEY = re.compile(r"(?:^|(?<= ))([A-Z][A-Za-z/]*)=")


def show(entity: str, fields: Sequence[str]) -> list[str]:
    """The sacctmgr query that prints these fields of an entity, separated by bars."""
    return ["sacctmgr", "--noheader", "--parsable2", "show", entity, f"format={','.join(fields)}"]


def rows(text: str, fields: Sequence[str]) -> list[list[str]]:
    """The fields of sacctmgr's records.

    sacctmgr separates by "|" and line breaks only, which Slurm permits in names of accounts.
    Records with such names are left out: one name must not hide the limits of all other users.
    Raises UnexpectedOutput if no line is a record.
    """
    lines = list(filter(str.strip, text.split("\n")))
    records = [[value.strip() for value in line.split("|")] for line in lines]
    fitting = [values for values in records if len(values) == len(fields)]
    if lines and not fitting:
        raise UnexpectedOutput(f"sacctmgr: not {len(fields)} fields in {lines[0][:200]!r}")
    return fitting


def described(text: str) -> dict[str, str]:
    """Names and descriptions from lines "name|description".

    A description may contain bars and line breaks. A second line for the same name could be part of
    another description, so that name gets none.
    """
    descriptions: dict[str, str] = {}
    ambiguous: set[str] = set()
    for line in text.split("\n"):
        name, bar, description = line.partition("|")
        if bar and name in descriptions:
            ambiguous.add(name)
        if bar:
            descriptions.setdefault(name, clean(description))
    return {name: text for name, text in descriptions.items() if name not in ambiguous}


def clean(text: str) -> str:
    """Text of a site's administrators without unprintable characters, at most 200 characters."""
    return "".join(c if c.isprintable() else " " for c in text).strip()[:200]


def record(line: str) -> dict[str, str]:
    """The fields of a line "Name=value Name=value", whose values may contain spaces.

    A value that looks like a field itself does not replace the real one, which comes earlier.
    """
    fields: dict[str, str] = {}
    marks = list(_KEY.finditer(line))
    ends = [*(mark.start() for mark in marks[1:]), len(line)]
    for mark, end in zip(marks, ends, strict=bool(marks)):
        fields.setdefault(mark[1], line[mark.end() : end].strip())
    return fields


def names(text: str) -> tuple[str, ...]:
    """The names of a comma-separated list; () for an empty one."""
    if text.lower() in _NOTHING:
        return ()
    return tuple(name for name in text.split(",") if name)


def word(text: str) -> str:
    """A value; "" if Slurm prints one of its words for none."""
    return "" if text.lower() in _NOTHING else text


def number(text: str) -> int | None:
    """A number; None for no limit."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def minutes_of(text: str) -> Minutes:
    """Amounts over time, such as "cpu=1000,mem=2000,gres/gpu=5"."""
    tres = amount(text)
    return Minutes(tres.cpus, tres.memory_mb, tres.shards, tres.gpus)
