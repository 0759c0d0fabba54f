"""The fields of a launch request that sbatch would refuse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from portal.core.cluster.choice.access import (
    account_refusal,
    constraint_refusal,
    entry_of,
    in_groups,
    options_in_effect,
    partition_refusal,
    qos_refusal,
    reservation_refusal,
)
from portal.core.cluster.choice.submit_limits import CountJobs, too_many_jobs
from portal.core.cluster.limits import Limits, Tres, UserLimits, user_limits
from portal.core.cluster.rules.site import unfenced
from portal.core.slurm_options import SlurmOptions
from portal.core.units import exact_size, format_cores
from portal.errors import FieldError


@dataclass(frozen=True)
class RequestedJob:
    """The parts of a launch request that these rules check; memory in MiB."""

    options: SlurmOptions
    cpus: int
    memory_mb: int
    gpu: bool = False
    count: int = 1


def choice_problems(
    user: str,
    partition: str,
    request: RequestedJob,
    limits: Limits | None,
    groups: frozenset[str] | None = None,
    now: datetime | None = None,
    count_jobs: CountJobs | None = None,
) -> list[FieldError]:
    """The fields that Slurm refuses in this partition; [] if its rules are not known.

    `groups` are the user's Unix groups; with None, Slurm decides. A job that has to wait, as for a
    used-up GrpTRESMins, is not a problem here. A job that a QOS never starts is one, with
    DenyOnLimit and without it. `count_jobs` counts jobs in the queue.
    """
    if limits is None or not partition:
        return []
    if not limits.fenced:
        return [FieldError("resource_group", unfenced(limits.fenced))]
    problems = option_problems(user, partition, request.options, limits, groups, now)
    effective = user_limits(user, partition, limits, request.options)
    if effective and not any(problem.field == "qos" for problem in problems):
        size_problems = [*_too_little(request, effective)]
        if text := too_many_jobs(effective, limits, request.count, count_jobs):
            size_problems.append(("count", text))
        problems += [FieldError(field, text) for field, text in size_problems]
    return problems


def option_problems(
    user: str,
    partition: str,
    options: SlurmOptions,
    limits: Limits,
    groups: frozenset[str] | None = None,
    now: datetime | None = None,
) -> list[FieldError]:
    """The fields that Slurm refuses because of the partition and the options alone."""
    account, _ = options_in_effect(user, partition, options, limits)
    refusals = []
    if not in_groups(partition, limits, groups):
        allowed = ", ".join(entry_of(partition, limits).groups)
        refusals.append(("resource_group", f"{partition} is for members of: {allowed}"))
    refusals += [
        ("resource_group", partition_refusal(partition, limits)),
        _account(user, account, options, partition, limits),
        ("qos", qos_refusal(user, account, options.qos, partition, limits)),
        ("reservation", _reservation(user, partition, options, limits, groups, now)),
        ("constraint", constraint_refusal(options.constraint, partition, limits)),
        ("exclusive", whole_node_refusal(partition, limits) if options.exclusive else ""),
    ]
    return [FieldError(field, text) for field, text in refusals if text]


def _account(
    user: str, account: str, options: SlurmOptions, partition: str, limits: Limits
) -> tuple[str, str]:
    """The refusal of the account in effect, on the partition's field if no account was chosen."""
    field = "account" if options.account else "resource_group"
    return field, account_refusal(user, account, partition, limits)


def whole_node_refusal(partition: str, limits: Limits) -> str:
    """Why a partition grants no whole node (OverSubscribe=FORCE); "" if it does."""
    if entry_of(partition, limits).oversubscribe.upper().startswith("FORCE"):
        return f"nodes in {partition} are always shared (OverSubscribe=FORCE)"
    return ""


def _reservation(
    user: str,
    partition: str,
    options: SlurmOptions,
    limits: Limits,
    groups: frozenset[str] | None,
    now: datetime | None,
) -> str:
    if not options.reservation:
        if entry_of(partition, limits).requires_reservation:
            return f"{partition} is only for jobs in a reservation; choose one"
        return ""
    reservation = next((r for r in limits.reservations if r.name == options.reservation), None)
    if reservation is None:
        hidden = "reservations" in limits.private
        return "" if hidden else f"Slurm has no reservation {options.reservation}"
    account, qos = options_in_effect(user, partition, options, limits)
    return reservation_refusal(reservation, user, partition, account, qos, limits, groups, now)


def least_of(effective: UserLimits) -> tuple[Tres, str]:
    """MinTRESPerJob and the QOS that sets it; the first QOS that sets one applies."""
    qos = next((qos for qos in effective.qos if qos.least != Tres()), None)
    return (qos.least, qos.name) if qos else (Tres(), "")


def _too_little(request: RequestedJob, effective: UserLimits) -> Iterator[tuple[str, str]]:
    least, qos = least_of(effective)
    where = f"(QOS {qos}, MinTRES); with less it never starts"
    if least.cpus is not None and request.cpus < least.cpus:
        yield "resources.cpus", f"a session needs at least {format_cores(least.cpus)} {where}"
    if least.memory_mb is not None and request.memory_mb < least.memory_mb:
        yield "resources.memory", f"a session needs at least {exact_size(least.memory_mb)} {where}"
    if (least.gpus or least.shards) and not request.gpu:
        yield (
            "resources.fgpu",
            f"a session needs a GPU (QOS {qos}, MinTRES); without one it never starts",
        )
