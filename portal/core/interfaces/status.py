"""Interface of what the worker last learnt of the cluster, in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Limits
from portal.core.cluster.usage import ClusterUsage, SlurmStatus
from portal.core.session.idle import TrafficSample


class StatusStore(Protocol):
    """What the worker last learnt of the cluster. Every method is one transaction."""

    def note_answer(self, now: datetime) -> None:
        """Record that Slurm answered."""
        ...

    def note_failure(self, now: datetime, message: str) -> None:
        """Record that Slurm did not answer; the time of the first failure is kept."""
        ...

    def slurm_status(self) -> SlurmStatus:
        """When Slurm last answered, and since when it does not."""
        ...

    def save_partitions(self, partitions: Sequence[Partition]) -> None:
        """Save the partitions for everybody."""
        ...

    def partitions(self) -> list[Partition]:
        """The partitions as last read; [] before the first time."""
        ...

    def save_limits(self, limits: Limits) -> None:
        """Save Slurm's limits for everybody."""
        ...

    def limits(self) -> Limits | None:
        """The limits as last read; None before the first time."""
        ...

    def save_use(self, use: ClusterUsage) -> None:
        """Save who holds what, as last polled."""
        ...

    def use(self) -> ClusterUsage:
        """Who held what when last polled."""
        ...

    def save_measured(self, measured: TrafficSample) -> None:
        """Save what browsers have sent to apps so far."""
        ...

    def measured(self) -> TrafficSample | None:
        """What they had sent when last measured; None before the first time."""
        ...
