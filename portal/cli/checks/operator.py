"""The operator's account, which cancels and extends jobs: its existence and its rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from portal.adapters.slurm.users import KnownUser
from portal.cli.findings import Finding, warn
from portal.errors import PortalError

ENOUGH = ("Operator", "Administrator")


def check_operator(
    name: str, uid_at_login: Callable[[str], int], slurm_user: Callable[[str], KnownUser | None]
) -> Iterator[Finding]:
    """Report why it cannot extend jobs; `slurm_user`: returns slurmctld's record of a user."""
    if not name:
        yield warn("slurm.operator is not set: nobody can extend a session from the portal")
        return
    try:
        uid, user = uid_at_login(name), slurm_user(name)
    except PortalError as error:
        yield Finding(False, f"slurm.operator {name}: {error.text}")
        return
    if uid < 0:
        yield Finding(False, f"slurm.operator: the login node has no account {name}; create it")
        return
    recreate = (
        f"sacctmgr delete user {name}, then sacctmgr add user {name} account=root "
        "adminlevel=operator"
    )
    if user is None:
        yield Finding(
            False,
            f"slurm.operator: slurmctld does not know {name}, or hides it from the reader "
            f"(PrivateData=users): sacctmgr add user {name} account=root adminlevel=operator",
        )
    elif user.uid is None:
        yield Finding(
            False,
            f"slurm.operator: slurmctld's host has no account {name}, so Slurm refuses it: create "
            f"it there with UID {uid}; as slurmctld remembers, afterwards {recreate}",
        )
    elif user.uid != uid:
        yield Finding(
            False,
            f"slurm.operator: {name} has UID {uid} on the login node and {user.uid} for slurmctld; "
            f"they must be the same; afterwards {recreate}",
        )
    elif user.admin_level not in ENOUGH:
        yield Finding(
            False,
            f"slurm.operator: {name} has AdminLevel={user.admin_level}: sacctmgr modify user "
            f"{name} set adminlevel=operator",
        )
    else:
        yield Finding(True, f"{name} may extend sessions (AdminLevel={user.admin_level})")
