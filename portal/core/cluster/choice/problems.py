"""Which fields of a launch request Slurm would refuse, as sbatch does."""

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
class Asked:
    """What a launch asks for, as far as these rules are about it."""

    options: SlurmOptions
    cpus: int
    memory_mb: int
    gpu: bool = False
    count: int = 1


def choice_problems(
    user: str,
    partition: str,
    asked: Asked,
    limits: Limits | None,
    groups: frozenset[str] | None = None,
    now: datetime | None = None,
    count_jobs: CountJobs | None = None,
) -> list[FieldError]:
    """The fields that Slurm refuses in this partition; [] if it is not known what it permits.

    `groups` are the user's Unix groups; None leaves the question to Slurm. What only waits, such
    as a used-up GrpTRESMins, is no problem here, unless it waits for ever: what a QOS never
    starts is refused with DenyOnLimit and without it. `count_jobs` counts those in the queue.
    """
    if limits is None or not partition:
        return []
    if not limits.fenced:
        return [FieldError("resource_group", unfenced(limits.fenced))]
    found = option_problems(user, partition, asked.options, limits, groups, now)
    own = user_limits(user, partition, limits, asked.options)
    if own and not any(one.field == "qos" for one in found):
        wrong = [*_too_little(asked, own)]
        if text := too_many_jobs(own, limits, asked.count, count_jobs):
            wrong.append(("count", text))
        found += [FieldError(field, text) for field, text in wrong]
    return found


def option_problems(
    user: str,
    partition: str,
    options: SlurmOptions,
    limits: Limits,
    groups: frozenset[str] | None = None,
    now: datetime | None = None,
) -> list[FieldError]:
    """The same, of the partition and the options alone, whatever the size of the request."""
    account, _ = options_in_effect(user, partition, options, limits)
    found = []
    if not in_groups(partition, limits, groups):
        allowed = ", ".join(entry_of(partition, limits).groups)
        found.append(("resource_group", f"{partition} is for members of: {allowed}"))
    found += [
        ("resource_group", partition_refusal(partition, limits)),
        _account(user, account, options, partition, limits),
        ("qos", qos_refusal(user, account, options.qos, partition, limits)),
        ("reservation", _reservation(user, partition, options, limits, groups, now)),
        ("constraint", constraint_refusal(options.constraint, partition, limits)),
        ("exclusive", whole_node_refusal(partition, limits) if options.exclusive else ""),
    ]
    return [FieldError(field, text) for field, text in found if text]


def _account(
    user: str, account: str, options: SlurmOptions, partition: str, limits: Limits
) -> tuple[str, str]:
    """Why the account in effect is refused; the partition is at fault if none was chosen."""
    field = "account" if options.account else "resource_group"
    return field, account_refusal(user, account, partition, limits)


def whole_node_refusal(partition: str, limits: Limits) -> str:
    """Why a whole node cannot be had in a partition: Slurm shares its nodes whatever is asked."""
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
    one = next((r for r in limits.reservations if r.name == options.reservation), None)
    if one is None:
        hidden = "reservations" in limits.private
        return "" if hidden else f"Slurm has no reservation {options.reservation}"
    account, qos = options_in_effect(user, partition, options, limits)
    return reservation_refusal(one, user, partition, account, qos, limits, groups, now)


def least_of(own: UserLimits) -> tuple[Tres, str]:
    """MinTRESPerJob and the QOS that sets it; an earlier QOS overrides a later one."""
    found = next((one for one in own.qos if one.least != Tres()), None)
    return (found.least, found.name) if found else (Tres(), "")


def _too_little(asked: Asked, own: UserLimits) -> Iterator[tuple[str, str]]:
    least, qos = least_of(own)
    where = f"(QOS {qos}, MinTRES); with less it never starts"
    if least.cpus is not None and asked.cpus < least.cpus:
        yield "resources.cpus", f"a session needs at least {format_cores(least.cpus)} {where}"
    if least.memory_mb is not None and asked.memory_mb < least.memory_mb:
        yield "resources.memory", f"a session needs at least {exact_size(least.memory_mb)} {where}"
    if (least.gpus or least.shards) and not asked.gpu:
        yield (
            "resources.fgpu",
            f"a session needs a GPU (QOS {qos}, MinTRES); without one it never starts",
        )
