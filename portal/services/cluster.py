"""What one person may choose from, by what the worker last read of Slurm."""

from __future__ import annotations

from portal.core.cluster.effective_limits import Group, groups_for
from portal.core.cluster.usage import GroupUse, group_use
from portal.core.interfaces.stores import StatusStore


def groups_of(status: StatusStore, user: str) -> list[Group] | None:
    """The partitions open to a person, with their bounds; None while none are known."""
    known = status.partitions()
    return groups_for(user, known, status.limits()) if known else None


def use_of(status: StatusStore, user: str, group: str | None) -> GroupUse | None:
    """A person's bars in a group (default: the usual one); None when it is not open to them."""
    return group_use(user, group, status.partitions(), status.limits(), status.use())
