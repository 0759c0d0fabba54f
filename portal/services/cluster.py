"""The cluster's status for users, as the worker last read it from Slurm."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from operator import is_

from portal.core.cluster.choice.constraint import satisfiable
from portal.core.cluster.choice.submit_limits import CountJobs
from portal.core.cluster.gpu_offers import Gpus, has_gres
from portal.core.cluster.inventory import Node
from portal.core.cluster.job_reports import HOLDING, JobReport
from portal.core.cluster.node_use import NodeUse, measure_nodes
from portal.core.cluster.usage import SlurmStatus, measure_usage
from portal.core.cluster_view import ClusterView, UnixGroups
from portal.core.interfaces.systems import Scheduler
from portal.core.monitoring import LOOK
from portal.core.session.session import Session
from portal.errors import Unavailable
from portal.store.heartbeats import HeartbeatStore
from portal.store.status import StatusStore

log = logging.getLogger(__name__)

DOWN_AFTER = timedelta(seconds=5)
"""How long Slurm may fail to answer before launches are refused without asking it."""


GPUS_UNKNOWN_YET = (
    "Slurm does not know the GPUs of its nodes yet, as in the first seconds after its restart. "
    "Try again in a few seconds. If it lasts, tell the administrators."
)
NODES_UNKNOWN_YET = (
    "Slurm has not heard of its nodes yet, as in the first seconds after its restart. "
    "Try again in a few seconds. If it lasts, tell the administrators."
)


class Cluster:
    """The cluster's state as the worker last read it; reads the database, never Slurm."""

    def __init__(self, status: StatusStore, unix_groups: UnixGroups, count_jobs: CountJobs) -> None:
        self._status = status
        self._unix_groups = unix_groups
        self._count_jobs = count_jobs

    def look(self) -> ClusterView:
        """Partitions, limits and usage, all of one moment; one transaction."""
        reported = self._status.reported()
        return ClusterView(*reported, self._unix_groups, self._count_jobs)

    def slurm_status(self) -> SlurmStatus:
        """When Slurm last answered the worker."""
        return self._status.slurm_status()

    def has_gpu_for(self, session: Session) -> bool:
        """Whether nodes of its partition were last reported with the GPU that it requests."""
        return any(
            has_gres(session.gres, session.gpu_kind, partition)
            for partition in self.look().partitions
            if session.gres and session.partition in (None, partition.name)
        )

    def has_node_for(self, session: Session) -> bool:
        """Whether a node that Slurm reported lately is large enough and has the features."""
        sets = self._status.nodes.features_of(
            session.partition, session.cpus, session.memory_mb, session.fgpu or 0
        )
        if not session.constraint:
            return bool(sets)
        return any(satisfiable(session.constraint, [features]) for features in sets)


def refuse_while_down(status: SlurmStatus, now: datetime) -> None:
    """Raise Unavailable if Slurm has not answered for a while."""
    failing = None if status.worker_down(now) else status.failing_since
    if failing and now - failing > DOWN_AFTER:
        raise Unavailable(
            f"Slurm has not answered since {failing:%H:%M:%S} UTC, so nothing can be launched "
            "right now. Running sessions are not affected. Try again in a few minutes."
        )


class ClusterReader:
    """Reads Slurm in the worker, and stores the results for all processes."""

    def __init__(
        self, scheduler: Scheduler, status: StatusStore, heartbeats: HeartbeatStore, gpus: Gpus
    ) -> None:
        self._scheduler = scheduler
        self._status = status
        self._heartbeats = heartbeats
        self._gpus = gpus
        self._nodes: list[Node] = []
        self._saved: tuple[NodeUse, ...] | None = None
        self._holding: list[JobReport] = []
        self._measured: list[Node] | None = None
        """The nodes of the last measurement; _holding has the jobs that held resources on them."""

    def read_partitions(self) -> None:
        """Read partitions and nodes; raises Unavailable."""
        partitions = self._scheduler.partitions()
        if partitions:
            self._status.save_partitions(partitions)
        self._nodes = self._scheduler.nodes()

    def read_limits(self) -> None:
        """Read Slurm's limits; raises Unavailable and keeps the earlier ones if it fails."""
        self._status.save_limits(self._scheduler.limits())

    def note_jobs(self, jobs: Iterable[JobReport], now: datetime) -> None:
        """Record that Slurm answered, and the usage by these jobs."""
        self._status.note_answer(now)
        self._heartbeats.beat(LOOK, now)
        # Only jobs that hold resources count, and most of a long queue is pending. Jobs that have
        # not changed since the last poll are the same objects.
        holding = [job for job in jobs if job.state in HOLDING]
        same = len(holding) == len(self._holding) and all(map(is_, holding, self._holding))
        if same and self._nodes is self._measured:
            return
        self._status.save_use(measure_usage(holding, self._nodes, self._gpus))
        nodes = measure_nodes(holding, self._nodes, self._gpus)
        if nodes != self._saved:  # rarely changes on a quiet cluster, and is large on a large one
            self._status.nodes.save(nodes)
            self._saved = nodes
        self._holding, self._measured = holding, self._nodes

    def note_failure(self, now: datetime, reason: str) -> None:
        """Record that Slurm did not answer."""
        self._status.note_failure(now, reason)
        self._heartbeats.beat(LOOK, now)
