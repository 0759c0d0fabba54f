"""What the worker last learnt of the cluster, in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Limits
from portal.core.cluster.usage import ClusterUsage, SlurmStatus
from portal.core.session.idle import TrafficSample


class StatusStore(Protocol):
    """What the worker last learnt of the cluster."""

    def note_answer(self, now: datetime) -> None:
        """Slurm answered."""
        ...

    def note_failure(self, now: datetime, message: str) -> None:
        """Slurm did not answer; the first failure's time is kept."""
        ...

    def slurm_status(self) -> SlurmStatus:
        """When Slurm last answered."""
        ...

    def save_partitions(self, partitions: Sequence[Partition]) -> None:
        """Keep the partitions for everybody."""
        ...

    def partitions(self) -> list[Partition]:
        """The partitions as last read; [] before the first time."""
        ...

    def save_limits(self, limits: Limits) -> None:
        """Keep Slurm's limits for everybody."""
        ...

    def limits(self) -> Limits | None:
        """The limits as last read; None before the first time."""
        ...

    def save_use(self, use: ClusterUsage) -> None:
        """Keep who holds what at this look."""
        ...

    def use(self) -> ClusterUsage:
        """Who held what at the last look."""
        ...

    def save_measured(self, measured: TrafficSample) -> None:
        """Keep what browsers had sent to the apps."""
        ...

    def measured(self) -> TrafficSample | None:
        """What they had sent at the last measurement; None before the first one."""
        ...
