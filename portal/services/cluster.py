"""The cluster's status for users, as the worker last read it from Slurm."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import cache
from operator import is_

from portal.core.cluster.choice.account_use import AccountUse, account_use
from portal.core.cluster.choice.chooser import job_offers, launch_options
from portal.core.cluster.choice.constraint import satisfiable
from portal.core.cluster.choice.offers import JobOffers, LaunchOptions
from portal.core.cluster.choice.problems import Asked, choice_problems, option_problems
from portal.core.cluster.choice.submit_limits import CountJobs
from portal.core.cluster.effective_limits import UserPartition, partitions_for
from portal.core.cluster.gpu_offers import Gpus
from portal.core.cluster.inventory import Node, Partition
from portal.core.cluster.jobs import HOLDING, JobReport
from portal.core.cluster.limits import Limits
from portal.core.cluster.meters import PartitionUsage, partition_usage
from portal.core.cluster.node_use import NodeUse, measure_nodes
from portal.core.cluster.usage import ClusterUsage, SlurmStatus, measure_usage
from portal.core.interfaces.monitoring.measures import HeartbeatStore
from portal.core.interfaces.status import StatusStore
from portal.core.interfaces.systems import Scheduler
from portal.core.launch.request import LaunchRequest
from portal.core.launch.templates import Template, options_with
from portal.core.monitoring import LOOK
from portal.core.policy import group_for, misfit
from portal.core.session.session import Session
from portal.core.site_rules import SiteRules
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions
from portal.errors import FieldError, InvalidRequest, Unavailable
from portal.services.unix_groups import names_groups

log = logging.getLogger(__name__)

DOWN_AFTER = timedelta(seconds=5)
"""How long Slurm may fail to answer before launches are refused without asking it."""


class Cluster:
    """Partitions, limits and usage; reads the database, never Slurm."""

    def __init__(
        self,
        status: StatusStore,
        groups_of: Callable[[str], frozenset[str] | None],
        count_jobs: CountJobs,
    ) -> None:
        self._status = status
        self._groups_of = groups_of
        self._count_jobs = count_jobs

    def slurm_status(self) -> SlurmStatus:
        """When Slurm last answered the worker."""
        return self._status.slurm_status()

    def refuse_while_down(self, now: datetime) -> None:
        """Raise Unavailable if Slurm has not answered for a while."""
        status = self.slurm_status()
        failing = None if status.worker_down(now) else status.failing_since
        if failing and now - failing > DOWN_AFTER:
            raise Unavailable(
                f"Slurm has not answered since {failing:%H:%M:%S} UTC, so nothing can be launched "
                "right now. Running sessions are not affected. Try again in a few minutes."
            )

    def partitions(self) -> list[Partition]:
        """All partitions; [] before the worker's first poll."""
        return self._status.partitions()

    def has_node_for(self, session: Session) -> bool:
        """Whether a node that Slurm reported lately is large enough and has the features."""
        limits = self._status.limits()
        has: dict[str, frozenset[str]] = {}
        for one in limits.features if limits else ():
            has[one.node] = has.get(one.node, frozenset()) | frozenset(one.features)
        return any(
            session.partition in (None, *node.partitions)
            and node.cpus >= session.cpus
            and node.memory_mb >= session.memory_mb
            and node.fgpu >= (session.fgpu or 0)
            and (
                not session.constraint
                or satisfiable(session.constraint, [has.get(node.name, frozenset())])
            )
            for node in self._status.nodes()
        )

    def limits(self) -> Limits | None:
        """Slurm's limits; None before the worker's first poll."""
        return self._status.limits()

    def usage(self) -> ClusterUsage:
        """What all jobs hold."""
        return self._status.use()

    def partitions_for(
        self, user: str, options: SlurmOptions = NO_OPTIONS
    ) -> list[UserPartition] | None:
        """The partitions that a user may use with these options, with their limits.

        None before the first poll.
        """
        known = self._status.partitions()
        return partitions_for(user, known, self._status.limits(), options) if known else None

    def launch_options(
        self,
        user: str,
        group: str | None = None,
        options: SlurmOptions = NO_OPTIONS,
        now: datetime | None = None,
    ) -> LaunchOptions:
        """What a user may choose of Slurm's options, given what is chosen already."""
        known, limits = self._status.partitions(), self._status.limits()
        unix_groups = self._groups(user, limits)
        return launch_options(
            user, group, options, known, limits, unix_groups, now, self._count_jobs
        )

    def job_offers(self, user: str, now: datetime) -> JobOffers:
        """What a user may choose of Slurm's options for jobs, in some partition."""
        known, limits = self._status.partitions(), self._status.limits()
        return job_offers(user, known, limits, self._groups(user, limits), now)

    def option_problems(
        self, user: str, group: str, options: SlurmOptions, now: datetime | None = None
    ) -> list[FieldError]:
        """The fields among these options that Slurm would refuse in a partition."""
        limits = self._status.limits()
        if limits is None:
            return []
        return option_problems(user, group, options, limits, self._groups(user, limits), now)

    def account_use(self, user: str, everybody: bool = False) -> list[AccountUse]:
        """A user's accounts, or all of them, with what is used of their limits in time."""
        return account_use(user, self._status.limits(), everybody)

    def choice_problems(
        self,
        user: str,
        request: LaunchRequest,
        now: datetime,
        count_jobs: CountJobs | None = None,
    ) -> list[FieldError]:
        """The fields that Slurm would refuse: of its own options, of sizes, and the count."""
        known, limits = self._status.partitions(), self._status.limits()
        usable = partitions_for(user, known, limits)
        group = group_for(request.resource_group, usable or known)
        if request.account or request.qos:  # sbatch takes the default partition, open or not
            group = group_for(None, known)
        name = request.resource_group or (group.name if group else "")
        if name not in {one.name for one in known}:
            return []  # an error of its own
        sizes = request.resources
        asked = Asked(
            request.slurm, sizes.cpus, sizes.memory, bool(sizes.fgpu), count=request.count
        )
        unix_groups, count = self._groups(user, limits), count_jobs or self._count_jobs
        return choice_problems(user, name, asked, limits, unix_groups, now, count)

    def _groups(self, user: str, limits: Limits | None) -> frozenset[str] | None:
        """The user's Unix groups, asked for only where a partition or a reservation names any."""
        return self._groups_of(user) if names_groups(limits) else None

    def template_misfits(
        self,
        user: str,
        templates: Iterable[Template],
        rules: SiteRules,
        gpus: Gpus,
        now: datetime,
        group: str | None = None,
        chosen: SlurmOptions = NO_OPTIONS,
    ) -> list[str]:
        """Why a user could not launch with each of these templates; "" if they could.

        With the resource group and Slurm's options that are chosen besides the template, if any.
        """
        open_to_user: dict[SlurmOptions, list[UserPartition] | None] = {}
        count_jobs = cache(self._count_jobs)  # most templates meet the same limits

        def why(template: Template) -> str:
            options = options_with(template, chosen)
            if options not in open_to_user:
                open_to_user[options] = self.partitions_for(user, options)
            return misfit(
                template,
                open_to_user[options],
                rules,
                gpus,
                group,
                chosen,
                lambda request: self.choice_problems(user, request, now, count_jobs),
            )

        return [why(template) for template in templates]

    def usage_for(
        self, user: str, partition: str | None, options: SlurmOptions = NO_OPTIONS
    ) -> PartitionUsage | None:
        """A user's usage of a partition (None: the default one); None if they may not use it."""
        limits = self._status.limits()
        return partition_usage(
            user, partition, self._status.partitions(), limits, self._status.use(), options
        )

    def partitions_with(self, user: str, options: SlurmOptions) -> list[UserPartition]:
        """The partitions whose jobs may have this account and this QOS; [] before the first poll.

        Raises InvalidRequest if none accepts them.
        """
        names = [one.name for one in self._status.partitions()]
        refused = self._account_problems(user, names, options)
        open_to_user = self.partitions_for(user, options) or []
        found = [one for one in open_to_user if not refused[one.name]]
        if not found and (wrong := next(filter(None, refused.values()), [])):
            raise InvalidRequest(wrong)
        return found

    def usage_with(self, user: str, partition: str | None, options: SlurmOptions) -> PartitionUsage:
        """A user's usage of a partition (None: the default one) with this account and this QOS.

        Raises InvalidRequest if the user may not use them there.
        """
        usable = self.partitions_for(user, options) or self.partitions_for(user) or []
        group = group_for(partition, usable)
        name = group.name if group else partition or ""
        if wrong := self._account_problems(user, [name], options)[name]:
            raise InvalidRequest(wrong)
        found = self.usage_for(user, name or None, options)
        if found is None:
            text = "this resource group is not open to you"
            raise InvalidRequest([FieldError("resource_group", text)])
        return found

    def account_problems(
        self, user: str, partition: str | None, options: SlurmOptions
    ) -> list[FieldError]:
        """Why an account and a QOS cannot be combined in a partition; None: in any of them."""
        names = [partition] if partition else [one.name for one in self._status.partitions()]
        return min(self._account_problems(user, names, options).values(), key=len, default=[])

    def _account_problems(
        self, user: str, partitions: Iterable[str], options: SlurmOptions
    ) -> dict[str, list[FieldError]]:
        """Why account and QOS are refused, by the partition."""
        limits = self._status.limits()  # once: those of a large site are megabytes
        chosen = SlurmOptions(account=options.account, qos=options.qos)
        return {
            name: [
                wrong
                for wrong in (option_problems(user, name, chosen, limits) if limits else [])
                if wrong.field in ("account", "qos")
            ]
            for name in partitions
        }


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
        """The nodes of the last measurement, and the jobs that held something on them."""

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
        # Only jobs that hold something count; most of a long queue waits, and what did not change
        # since the last poll is the same objects.
        holding = [job for job in jobs if job.state in HOLDING]
        same = len(holding) == len(self._holding) and all(map(is_, holding, self._holding))
        if same and self._nodes is self._measured:
            return
        self._status.save_use(measure_usage(holding, self._nodes, self._gpus))
        nodes = measure_nodes(holding, self._nodes, self._gpus)
        if nodes != self._saved:  # seldom on a quiet cluster, and large on a large one
            self._status.save_nodes(nodes)
            self._saved = nodes
        self._holding, self._measured = holding, self._nodes

    def note_failure(self, now: datetime, why: str) -> None:
        """Record that Slurm did not answer."""
        self._status.note_failure(now, why)
        self._heartbeats.beat(LOOK, now)
