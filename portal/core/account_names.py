"""Account names: the site's pattern, within the names that are safe everywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

DEFAULT = "[a-z_][a-z0-9_-]{0,31}"
"""Pattern of most Linux systems (useradd's NAME_REGEX)."""
MAX_PATTERN = 200
WIDEST = "[A-Za-z0-9_][A-Za-z0-9._@-]{0,63}"
"""The widest pattern that a site may permit. Names become parts of paths ("~NAME", "{user}"),
arguments of Slurm's commands, principals of certificates and words of batch scripts, so characters
with a meaning there are excluded: "/", blanks, quotes, ":", ",", "$", and "-" and "." in front."""
_WIDEST = re.compile(WIDEST)
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_PARTS = re.compile(r"\\[^.-]|\(\?[^:]")
"""Escapes except of "." and "-", and groups other than "(…)" and "(?:…)"."""
_PROBES = ("a{}a", "{}a", "a{}", "A{}1", "0{}a", "a.{}b", "a@{}b", "a-{}b", "{}{}")
"""Positions at which a forbidden character is tried."""


def is_safe(name: str) -> bool:
    """Whether this may be the name of a person's account at any site.

    Names of digits only are refused: getent, id and squeue read them as user numbers.
    """
    return _WIDEST.fullmatch(name) is not None and not name.isdigit() and name != "root"


@dataclass(frozen=True)
class AccountNames:
    """The site's rule; raises ValueError if the pattern cannot be used."""

    pattern: str = DEFAULT

    def __post_init__(self) -> None:
        if problem := _problem(self.pattern):
            raise ValueError(problem)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.ASCII)

    def permits(self, name: str) -> bool:
        """Whether an account of this name may use the portal."""
        return is_safe(name) and self._compiled.fullmatch(name) is not None


def _problem(pattern: str) -> str:
    """Why a pattern cannot be used; "" if it can."""
    if not 0 < len(pattern) <= MAX_PATTERN:
        return f"use 1 to {MAX_PATTERN} characters"
    if _PARTS.search(pattern) or _REPEATED_GROUP.search(pattern):
        # Other patterns can take exponential time on a name, and names come from unknown clients.
        return "use characters, classes as [a-z], ?, *, +, {m,n}, (…|…); repeat no group"
    try:
        compiled = re.compile(pattern, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        return f"is not a regular expression: {error}"
    for number in range(128):
        character = chr(number)
        if not _WIDEST.fullmatch(f"a{character}a") and _reaches(compiled, character):
            return f"permits names with {character!r}, which no name may contain"
    return _front(compiled)


def _reaches(compiled: re.Pattern[str], character: str) -> bool:
    return any(compiled.fullmatch(probe.replace("{}", character)) for probe in _PROBES)


def _front(compiled: re.Pattern[str]) -> str:
    for first in "-.@":
        if any(compiled.fullmatch(first + suffix) for suffix in ("", "a", "A", "1", "a.a", "a@a")):
            return f"permits names that begin with {first!r}, which none may"
    return ""
