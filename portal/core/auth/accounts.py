"""Cluster accounts: whether a logged-in user's account is still valid."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

NO_SHELLS = frozenset({"nologin", "false"})
"""Login shells that refuse every login."""
LOCKED = "L"


@dataclass(frozen=True)
class AccountStatus:
    """Status of an account on the login node."""

    may_log_in: bool
    """False for example for an expired account."""
    password: str = ""
    """"P" for a usable password, "L" for a locked one, "" if unknown."""


@dataclass(frozen=True)
class Identity:
    """An account of the login node that may log in."""

    uid: int
    groups: frozenset[str]
    """Names of all of its groups."""


@dataclass(frozen=True)
class Account:
    """An account with the login node's spelling of its name."""

    name: str
    uid: int


def read_account(passwd: str) -> Account | None:
    """The first account in `passwd` (passwd(5)).

    Some directories ignore case, or accept short and full names, so the spelling may differ.
    """
    for line in passwd.split("\n"):
        fields = line.split(":")
        if len(fields) == 7 and re.fullmatch(r"[0-9]{1,10}", fields[2]):
            return Account(fields[0], int(fields[2]))
    return None


def read_uid(user: str, passwd: str) -> int | None:
    """The user's number in `passwd` (passwd(5)); None without an entry or a shell for logins."""
    for line in passwd.split("\n"):
        fields = line.split(":")
        if len(fields) == 7 and fields[0] == user and fields[2].isdecimal():
            return None if fields[6].rpartition("/")[2] in NO_SHELLS else int(fields[2])
    return None


def read_missing(names: Collection[str], passwd: str) -> set[str]:
    """The names without an entry in `passwd` (passwd(5)), or with a shell that refuses logins."""
    existing = set()
    for line in passwd.split("\n"):
        fields = line.split(":")
        if len(fields) == 7 and fields[6].rpartition("/")[2] not in NO_SHELLS:
            existing.add(fields[0])
    return set(names) - existing


def read_password_status(user: str, output: str) -> str:
    """Parse the output of `passwd --status`: "P", "L", or "" if it is not conclusive.

    Only a line with all seven fields comes from shadow(5). Without an entry there, as with LDAP,
    the command prints two fields, always with "L".
    """
    for line in output.split("\n"):
        words = line.split()
        if len(words) == 7 and words[0] == user and words[1] in ("P", "L"):
            return words[1]
    return ""
