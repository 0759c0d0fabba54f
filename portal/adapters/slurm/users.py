"""What slurmctld knows of one user: scontrol's arguments, and the parser of its output."""

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
    """Ask slurmctld, not the database: only it decides who may extend a job."""
    return ["scontrol", "--oneliner", "show", "assoc_mgr", "flags=users", f"users={name}"]


def user_parse(text: str, name: str) -> KnownUser | None:
    """The user; None if slurmctld knows none of this name."""
    for line in text.split("\n"):
        found = re.match(r"UserName=(\S+)\((\d+)\) .*\bAdminLevel=(\S+)", line)
        if found and found[1] == name:
            uid = int(found[2])
            return KnownUser(None if uid >= NO_UID else uid, found[3])
    return None
