"""scontrol's query for slurmctld's record of one user: arguments and parser."""

from __future__ import annotations

import re
from dataclasses import dataclass

NO_UID = 0xFFFFFFFE
"""Slurm's NO_VAL: slurmctld's host has no such account."""


@dataclass(frozen=True)
class KnownUser:
    """One user of Slurm's accounting, as slurmctld holds it in memory."""

    uid: int | None
    """None if slurmctld's host does not know the account."""
    admin_level: str


def user_argv(name: str) -> list[str]:
    """Query slurmctld, not the database, since slurmctld decides who may extend a job."""
    return ["scontrol", "--oneliner", "show", "assoc_mgr", "flags=users", f"users={name}"]


def user_parse(text: str, name: str) -> KnownUser | None:
    """The user's record; None if slurmctld has none of this name."""
    for line in text.split("\n"):
        match = re.match(r"UserName=(\S+)\((\d+)\) .*\bAdminLevel=(\S+)", line)
        if match and match[1] == name:
            uid = int(match[2])
            return KnownUser(None if uid >= NO_UID else uid, match[3])
    return None
