"""What one person may choose from, by what the worker last read of Slurm."""

from __future__ import annotations

from portal.core.cluster.effective_limits import UserPartition, partitions_for
from portal.core.cluster.usage import PartitionUsage, partition_usage
from portal.core.interfaces.status import StatusStore


def partitions_for_user(status: StatusStore, user: str) -> list[UserPartition] | None:
    """The partitions open to a person, with their bounds; None while none are known."""
    known = status.partitions()
    return partitions_for(user, known, status.limits()) if known else None


def usage_for_user(status: StatusStore, user: str, group: str | None) -> PartitionUsage | None:
    """A person's bars in a group (default: the usual one); None when it is not open to them."""
    return partition_usage(user, group, status.partitions(), status.limits(), status.use())
