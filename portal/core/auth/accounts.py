"""Accounts of the cluster: whether whoever is logged in still may be."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

NO_SHELLS = frozenset({"nologin", "false"})
"""Names of login shells that let nobody in."""
LOCKED = "L"


@dataclass(frozen=True)
class AccountStatus:
    """What the login node says of an account."""

    let_in: bool
    """Whether it lets the account in: expired ones, for one, it does not."""
    password: str = ""
    """"P" for a usable password, "L" for a locked one, "" where that cannot be told."""


def read_missing(names: Collection[str], passwd: str) -> set[str]:
    """The names without a line of passwd(5), or with a shell that lets nobody in."""
    there = set()
    for line in passwd.splitlines():
        fields = line.split(":")
        if len(fields) == 7 and fields[6].rpartition("/")[2] not in NO_SHELLS:
            there.add(fields[0])
    return set(names) - there


def read_password_status(user: str, said: str) -> str:
    """What `passwd --status` says: "P", "L", or "" where it says nothing of use.

    Only a line with all seven fields is from shadow(5). Without an entry there, as with LDAP, the
    command prints two, and "L" whatever is true.
    """
    for line in said.splitlines():
        words = line.split()
        if len(words) == 7 and words[0] == user and words[1] in ("P", "L"):
            return words[1]
    return ""
