"""The cluster as one request sees it: Slurm's last reports, read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property

from portal.core.cluster.choice.account_use import AccountUse, account_use
from portal.core.cluster.choice.chooser import job_offers, launch_options
from portal.core.cluster.choice.offers import JobOffers, LaunchOptions
from portal.core.cluster.choice.problems import RequestedJob, choice_problems, option_problems
from portal.core.cluster.choice.submit_limits import CountJobs
from portal.core.cluster.effective_limits import UserPartition, partitions_for
from portal.core.cluster.gpu_offers import Gpus
from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Limits
from portal.core.cluster.meters import PartitionUsage, partition_usage
from portal.core.cluster.usage import ClusterUsage, SlurmStatus
from portal.core.launch.request import LaunchRequest
from portal.core.launch.templates import Template, options_with
from portal.core.policy import group_for, misfit
from portal.core.site_rules import SiteRules
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions
from portal.errors import FieldError, InvalidRequest

UnixGroups = Callable[[str], "frozenset[str] | None"]
"""Looks up a user's Unix groups; None if the login node does not report them."""


def _unknown_groups(_: str) -> frozenset[str] | None:
    return None


def _no_jobs(_: object) -> int:
    return 0


_NEVER = SlurmStatus(None, None)
_UNUSED = ClusterUsage()


def names_groups(limits: Limits | None) -> bool:
    """Whether any partition or reservation is restricted to Unix groups."""
    if limits is None:
        return False
    return any(partition.groups for partition in limits.partitions) or any(
        reservation.groups for reservation in limits.reservations
    )


@dataclass(frozen=True)
class ClusterView:
    """Partitions, limits and usage at one moment; empty before the worker's first poll."""

    status: SlurmStatus = _NEVER
    partitions: Sequence[Partition] = ()
    limits: Limits | None = None
    use: ClusterUsage = _UNUSED
    unix_groups: UnixGroups = field(default=_unknown_groups, compare=False)
    count_jobs: CountJobs = field(default=_no_jobs, compare=False)
    """Counts jobs in a part of the queue; called only if a limit depends on the number."""

    def learn_groups(self, user: str) -> None:
        """Look up the user's Unix groups now, if any limit depends on them."""
        self._groups_of(user)

    def partitions_for(
        self, user: str, options: SlurmOptions = NO_OPTIONS, only: str | None = None
    ) -> list[UserPartition] | None:
        """The partitions (or `only` this one) that a user may use with these options.

        With their limits. None before the first poll.
        """
        if not self.partitions:
            return None
        return list(self._usable(user, options, only))

    def _usable(
        self, user: str, options: SlurmOptions, only: str | None = None
    ) -> Sequence[UserPartition]:
        chosen = (user, options.account, options.qos, only)  # no other option matters
        if chosen not in self._known_usable:
            partitions = [item for item in self.partitions if only in (None, item.name)]
            self._known_usable[chosen] = partitions_for(user, partitions, self.limits, options)
        return self._known_usable[chosen]

    @cached_property
    def _known_usable(self) -> dict[tuple[str, str, str, str | None], Sequence[UserPartition]]:
        return {}

    def launch_options(
        self,
        user: str,
        group: str | None = None,
        options: SlurmOptions = NO_OPTIONS,
        now: datetime | None = None,
    ) -> LaunchOptions:
        """The choices of Slurm's options open to a user, given the current ones."""
        unix_groups = self._groups_of(user)
        return launch_options(
            user, group, options, self.partitions, self.limits, unix_groups, now, self.count_jobs
        )

    def job_offers(self, user: str, now: datetime) -> JobOffers:
        """The choices of Slurm's options open to a user for jobs, in any partition."""
        return job_offers(user, self.partitions, self.limits, self._groups_of(user), now)

    def option_problems(
        self, user: str, group: str, options: SlurmOptions, now: datetime | None = None
    ) -> list[FieldError]:
        """The fields among these options that Slurm would refuse in a partition."""
        if self.limits is None:
            return []
        return option_problems(user, group, options, self.limits, self._groups_of(user), now)

    def choice_problems(
        self, user: str, request: LaunchRequest, now: datetime, count_jobs: CountJobs | None = None
    ) -> list[FieldError]:
        """The fields that Slurm would refuse: its options, the sizes, and the count."""
        name = self.partition_of(user, request)
        if name not in {partition.name for partition in self.partitions}:
            return []  # reported for the field itself
        sizes = request.resources
        requested = RequestedJob(
            request.slurm, sizes.cpus, sizes.memory, bool(sizes.fgpu), count=request.count
        )
        count = count_jobs or self.count_jobs
        return choice_problems(
            user, name, requested, self.limits, self._groups_of(user), now, count
        )

    def partition_of(self, user: str, request: LaunchRequest) -> str:
        """The partition that a request names, or the default one; "" if there is none."""
        usable = partitions_for(user, self.partitions, self.limits)
        group = group_for(request.resource_group, usable or self.partitions)
        if request.account or request.qos:  # sbatch takes the default partition, open or not
            group = group_for(None, self.partitions)
        return request.resource_group or (group.name if group else "")

    def _groups_of(self, user: str) -> frozenset[str] | None:
        """The user's Unix groups, looked up only if a partition or a reservation names any."""
        return self.unix_groups(user) if names_groups(self.limits) else None

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

        `group` and `chosen` are the resource group and Slurm's options chosen beside the template.
        """
        count_jobs = cache(self.count_jobs)  # most templates meet the same limits

        def misfit_of(template: Template) -> str:
            return misfit(
                template,
                self.partitions_for(user, options_with(template, chosen)),
                rules,
                gpus,
                group,
                chosen,
                lambda request: self.choice_problems(user, request, now, count_jobs),
            )

        return [misfit_of(template) for template in templates]

    def account_use(self, user: str, everybody: bool = False) -> list[AccountUse]:
        """A user's accounts, or all of them, with the use of their budgets."""
        return account_use(user, self.limits, everybody)

    def usage_for(
        self, user: str, partition: str | None, options: SlurmOptions = NO_OPTIONS
    ) -> PartitionUsage | None:
        """A user's usage of a partition (None: the default one); None if they may not use it."""
        usable = self._usable(user, options)
        return partition_usage(
            user, partition, self.partitions, self.limits, self.use, options, usable
        )

    def partitions_with(self, user: str, options: SlurmOptions) -> list[UserPartition]:
        """The partitions whose jobs may have this account and this QOS; [] before the first poll.

        Raises InvalidRequest if none accepts them.
        """
        refused = self._account_problems(user, self._names(), options)
        usable = [
            partition
            for partition in self.partitions_for(user, options) or []
            if not refused[partition.name]
        ]
        if not usable and (problems := next(filter(None, refused.values()), [])):
            raise InvalidRequest(problems)
        return usable

    def usage_with(self, user: str, partition: str | None, options: SlurmOptions) -> PartitionUsage:
        """A user's usage of a partition (None: the default one) with this account and this QOS.

        Raises InvalidRequest if the user may not use them there.
        """
        usable = self.partitions_for(user, options) or self.partitions_for(user) or []
        group = group_for(partition, usable)
        name = group.name if group else partition or ""
        if problems := self._account_problems(user, [name], options)[name]:
            raise InvalidRequest(problems)
        usage = self.usage_for(user, name or None, options)
        if usage is None:
            text = "this resource group is not open to you"
            raise InvalidRequest([FieldError("resource_group", text)])
        return usage

    def account_problems(
        self, user: str, partition: str | None, options: SlurmOptions
    ) -> list[FieldError]:
        """Why an account and a QOS cannot be combined in a partition; None: in any of them."""
        names = [partition] if partition else self._names()
        return min(self._account_problems(user, names, options).values(), key=len, default=[])

    def _names(self) -> list[str]:
        return [partition.name for partition in self.partitions]

    def _account_problems(
        self, user: str, partitions: Iterable[str], options: SlurmOptions
    ) -> dict[str, list[FieldError]]:
        """The refusals of account and QOS, by partition."""
        chosen = SlurmOptions(account=options.account, qos=options.qos)
        limits = self.limits
        return {
            name: [
                problem
                for problem in (option_problems(user, name, chosen, limits) if limits else [])
                if problem.field in ("account", "qos")
            ]
            for name in partitions
        }
