"""Interface to the store of the cluster's last known status."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Limits
from portal.core.cluster.node_use import NodeUse
from portal.core.cluster.usage import ClusterUsage, SlurmStatus
from portal.core.session.idle import TrafficSample


class Reported(NamedTuple):
    """A consistent snapshot of Slurm's last reports; empty before the worker's first poll."""

    status: SlurmStatus = SlurmStatus(None, None)
    partitions: Sequence[Partition] = ()
    limits: Limits | None = None
    use: ClusterUsage = ClusterUsage()


class StatusStore(Protocol):
    """The cluster's status as last polled by the worker. Every method is one transaction."""

    def note_answer(self, now: datetime) -> None:
        """Record that Slurm answered."""
        ...

    def note_failure(self, now: datetime, message: str) -> None:
        """Record that Slurm did not answer; the time of the first failure is kept."""
        ...

    def slurm_status(self) -> SlurmStatus:
        """When Slurm last answered, and since when it has failed to."""
        ...

    def save_partitions(self, partitions: Sequence[Partition]) -> None:
        """Save the partitions."""
        ...

    def reported(self) -> Reported:
        """What Slurm last reported, except for its nodes."""
        ...

    def partitions(self) -> Sequence[Partition]:
        """The partitions as last read; empty before the first poll."""
        ...

    def save_limits(self, limits: Limits) -> None:
        """Save Slurm's limits."""
        ...

    def limits(self) -> Limits | None:
        """The limits as last read; None before the first poll."""
        ...

    def save_use(self, use: ClusterUsage) -> None:
        """Save the cluster's use, as last polled."""
        ...

    def use(self) -> ClusterUsage:
        """The cluster's use, as last polled."""
        ...

    def save_nodes(self, nodes: Sequence[NodeUse]) -> None:
        """Save who holds what on which node, as last polled."""
        ...

    def nodes(self) -> list[NodeUse]:
        """Who holds what on which node; [] before the first poll."""
        ...

    def save_measured(self, measured: TrafficSample) -> None:
        """Save the traffic from browsers to apps so far."""
        ...

    def measured(self) -> TrafficSample | None:
        """The traffic as last measured; None before the first measurement."""
        ...
